package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether w is a pipe that nobody reads any more. Who writes often
// learns that from writing; who waits for news, as in "gateway tail | head -n 1", would
// wait for ever.
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
		asked := []unix.PollFd{{Fd: int32(fd)}} // for errors only, of which it is always told
		n, err := unix.Poll(asked, 0)
		gone = err == nil && n > 0 && asked[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone && err == nil
}
