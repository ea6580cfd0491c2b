package terminal

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Writer remembers the first failed write. So the printing code need not check each write,
// and a full disk still ends in an error.
type Writer struct {
	w   io.Writer
	err error
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes p. After a failed write it writes nothing more: output with a gap would be
// worse than output that ends.
func (c *Writer) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	c.err = err
	return n, err
}

// Err returns the error of the first failed write.
func (c *Writer) Err() error { return c.err }

// Check returns the error that the next write would have if the reader of a pipe has ended.
func (c *Writer) Check() error {
	if c.err == nil && readerGone(c.w) {
		c.err = syscall.EPIPE
	}
	return c.err
}

// readerGone reports whether w is a pipe without a reader. If a command writes often, its next
// write fails. A command that waits for news, as in "gateway tail | head -n 1", would wait for
// ever.
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
