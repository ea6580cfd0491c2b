//go:build !linux

package ports

import "net"

// A socket reserves nothing: these systems let no server bind a port next to another socket.
type socket struct{}

// bind chooses a port without a listener. Another process can take the port.
func bind() (socket, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return socket{}, 0, err
	}
	return socket{}, l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (socket) lend() error  { return nil }
func (socket) close() error { return nil }

func listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
