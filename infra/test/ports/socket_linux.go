package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// A socket is a bound TCP socket that does not listen. -1 is a closed socket.
//
// The kernel lets a second socket bind the port if both sockets have SO_REUSEADDR and neither
// listens, or if both have SO_REUSEPORT and the same user. It looks at the options as they are
// when the second socket binds or listens (inet_csk_bind_conflict), so they can be set after
// the first bind.
type socket struct{ fd int }

// soReuseport is SO_REUSEPORT, which package syscall does not have for all processors. The
// number is the same on all processors that Go supports, except MIPS.
const soReuseport = 0xf

// bind binds a socket to a port of the kernel's choice. At that time the socket has neither
// option, so the kernel chooses a port that no other socket has, not even a connection in
// TIME_WAIT. Then SO_REUSEPORT admits the listeners of this package. Other listeners do not
// set that option: they have SO_REUSEADDR, and get in only after lend. SOCK_CLOEXEC keeps
// child processes from holding the port after this process.
func bind() (socket, int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return socket{-1}, 0, os.NewSyscallError("socket", err)
	}
	s := socket{fd}
	number, err := s.choose()
	if err == nil {
		err = s.set(soReuseport)
	}
	if err != nil {
		return s, 0, errors.Join(err, s.close())
	}
	return s, number, nil
}

// choose binds the socket and returns its port.
func (s *socket) choose() (int, error) {
	if err := syscall.Bind(s.fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	at, err := syscall.Getsockname(s.fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("getsockname: an address of type %T, want IPv4", at)
	}
	return inet.Port, nil
}

// lend admits every socket with SO_REUSEADDR.
func (s *socket) lend() error { return s.set(syscall.SO_REUSEADDR) }

func (s *socket) set(option int) error {
	return os.NewSyscallError("setsockopt", syscall.SetsockoptInt(s.fd, syscall.SOL_SOCKET, option, 1))
}

func (s *socket) close() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return os.NewSyscallError("close", syscall.Close(fd))
}

// listen listens beside the socket that holds the port.
func listen(addr string) (net.Listener, error) {
	admitted := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			s := socket{int(fd)}
			failed = s.set(soReuseport)
		})
		return errors.Join(err, failed)
	}}
	return admitted.Listen(context.Background(), "tcp", addr)
}
