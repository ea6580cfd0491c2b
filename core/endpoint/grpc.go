package endpoint

import (
	"errors"
	"net/url"
	"strings"
)

// ParseReceiverURL reads the address of a gRPC receiver. It must be an address that
// ParseURL accepts, with nothing after host and port, since gRPC would ignore that.
func ParseReceiverURL(raw string) (*url.URL, error) {
	u, err := ParseURL(raw)
	if err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must end after host and port: the path of a gRPC call is always that of gateway.v1.EventReceiver")
	}
	return u, nil
}

// CheckMetadata returns why a configured header cannot be sent over gRPC; nil if it can:
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests.
func CheckMetadata(name, value string) error {
	if err := CheckHeader(name, value); err != nil {
		return err
	}
	name = strings.ToLower(name)
	switch {
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		return errors.New("is not a name that gRPC can carry; one has letters, digits, -, _ and dots")
	case strings.HasPrefix(name, "grpc-"), name == "content-type":
		return errors.New("is set by gRPC itself and cannot be changed")
	case strings.HasSuffix(name, "-bin"):
		return errors.New("has a name that gRPC keeps for binary values; choose one that does not end in -bin")
	}
	return nil
}
