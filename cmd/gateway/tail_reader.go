package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether w is a pipe without a reader. A command that writes often learns
// it from a failed write. A command that waits for news, as in "gateway tail | head -n 1",
// would wait for ever.
func readerGone(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = conn.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd)}} // no event is asked for: poll always reports errors
		n, err := unix.Poll(asked, 0)
		gone = err == nil && n > 0 && asked[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone && err == nil
}
