package remote

import (
	"net/url"
	"strings"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	for address, want := range map[string]string{
		"http://example.com/gateway.yaml":           "must be https://, except on this machine: over http, an attacker on the network could replace the configuration",
		"http://10.0.0.1/gateway.yaml":              "must be https://, except on this machine",
		"http://localhost.example.com/gateway.yaml": "must be https://, except on this machine",
		"http://0.0.0.0/gateway.yaml":               "must be https://, except on this machine",
		"https://example.com":                       "names no file",
		"https://example.com/":                      "names no file",
		"https://example.com/?gateway.yaml":         "names no file",
		"https://example.com/folder/":               "names no file",
		"https://example.com/folder/..":             "names no file",
		"https:///gateway.yaml":                     "has no host",
		"https://user:s3cret@example.com/g.yaml":    "must not hold a user name or password: the object must be public",
		"https://example.com/g.yaml#s3cret":         "must not hold a #; write %23 for one in a name",
		"https://example.com:99999/g.yaml":          "has a port outside 1 to 65535",
		"https://2130706433/g.yaml":                 "has a host that is almost an IPv4 address",
		"https://exa mple.com/s3cret":               "is not a valid address",
		"https://example.com/%zz?s3cret":            "is not a valid address",
		"ftp://example.com/s3cret":                  "has an unknown scheme; the known ones are http://, https://, s3://",
		"://s3cret":                                 "is not a valid address",
		"s3://elsewhere/g.yaml":                     "invalid argument",
	} {
		_, err := Open(address, Options{Client: newClient(t), Stores: map[string]Store{"s3": shelf{}}})
		if err == nil || !strings.HasPrefix(err.Error(), "the address of the configuration "+want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%s) = %v, want %q", address, err, want)
		}
	}
}

func TestOpenTakes(t *testing.T) {
	for address, name := range map[string]string{
		"https://example.com/gateway.yaml?sig=s3cret": "https://example.com/gateway.yaml",
		"HTTPS://example.com:8443/a%20b/g.yaml":       "https://example.com:8443/a%20b/g.yaml",
		"https://10.0.0.1/g":                          "https://10.0.0.1/g",
		"http://localhost:8080/g.yaml":                "http://localhost:8080/g.yaml",
		"http://config.localhost/g.yaml":              "http://config.localhost/g.yaml",
		"http://127.9.9.9/g.yaml":                     "http://127.9.9.9/g.yaml",
		"http://[::1]:80/g.yaml":                      "http://[::1]:80/g.yaml",
		"http://[::ffff:127.0.0.1]/g.yaml":            "http://[::ffff:127.0.0.1]/g.yaml",
	} {
		s, err := Open(address, Options{Client: newClient(t)})
		if err != nil || s.Name() != name {
			t.Errorf("Open(%s) = %+v, %v, want %s", address, s, err, name)
		}
	}
}

func TestIs(t *testing.T) {
	for raw, want := range map[string]bool{
		"gateway.yaml": false, "/etc/gateway.yaml": false, "c:/gateway.yaml": false, "../a:b/c": false,
		"https://example.com/g": true, "s3://b/k": true, "what://ever": true,
	} {
		if Is(raw) != want {
			t.Errorf("Is(%q) = %v, want %v", raw, !want, want)
		}
	}
}

func TestBeside(t *testing.T) {
	for from, want := range map[string]string{
		"https://example.com/gateway.yaml":       "https://example.com/other.yaml",
		"https://example.com/a/b/g.yaml?x=y%2Fz": "https://example.com/a/b/other.yaml?x=y%2Fz",
		"https://[::1]:80/a%2Fb/c%20d/g.yaml":    "https://[::1]:80/a%2Fb/c%20d/other.yaml",
		"s3://bucket//k":                         "s3://bucket//other.yaml",
	} {
		u, _ := url.Parse(from)
		if got, err := sibling(u, "other.yaml"); err != nil || got.String() != want {
			t.Errorf("sibling(%s) = %v, %v, want %s", from, got, err, want)
		}
	}
}
