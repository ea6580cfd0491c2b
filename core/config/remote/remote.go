// Package remote reads configurations from elsewhere: from an HTTP server, or from object
// stores that a program provides.
//
// The idea to know: the author of such a configuration decides where events go, and is trusted
// with no more than that. The configuration is read over TLS or from this machine, without
// redirects. The address guard of core/egress checks every connection. [config.Options.Remote]
// keeps the configuration from the environment and the disk.
//
// A [Source] makes as few requests as possible: it remembers each document with the version
// that the server gave it. But a version is only a hint, and the bytes decide whether something
// has changed. Some stores give the same bytes a new version at each write, and some servers
// give no version.
//
// remote imports core/config, core/egress, which makes its calls, and core/endpoint. The
// libraries of object stores are in its folder cloud, which a [Source] does not import: they
// are larger than the rest of the program, and functions do without them.
package remote

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Timeout bounds the reading of one document.
const Timeout = 10 * time.Second

// A Store reads objects by their addresses. All addresses of a store have one scheme.
type Store interface {
	// Check returns the fault of an address, without a call.
	Check(u *url.URL) error

	// Read returns at most most bytes of the object at an address that Check has passed. If
	// etag is not empty and still the object's, the result may be Same without a body. The
	// error of an object that does not exist is [fs.ErrNotExist]. No error contains the
	// address's query.
	Read(ctx context.Context, u *url.URL, etag string, most int64) (Object, error)
}

// An Object is the content of an address.
type Object struct {
	Same bool   // the object still has the given etag
	ETag string // of this version, opaque; empty if the store gives none
	Body []byte
}

// Is reports whether the value of -c is an address, and not the path of a file.
func Is(raw string) bool { return strings.Contains(raw, "://") }

// parse reads an address and finds its store. Its errors quote only the scheme.
func parse(raw string, stores map[string]Store) (*url.URL, Store, error) {
	u, err := url.Parse(raw)
	if err != nil { // which would quote all of it
		return nil, nil, errors.New("is not a valid address; write one such as https://example.com/gateway.yaml")
	}
	store, known := stores[u.Scheme]
	switch last := path.Base(u.EscapedPath()); {
	case !known:
		return nil, nil, errors.New("has an unknown scheme; the known ones are " + schemes(stores))
	// The address appears in logs and in processes' arguments.
	case u.User != nil:
		return nil, nil, errors.New("must not hold a user name or password: the object must be public")
	case u.Host == "":
		return nil, nil, errors.New("has no host; write an address such as https://example.com/gateway.yaml")
	case u.Fragment != "":
		return nil, nil, errors.New("must not hold a #; write %23 for one in a name")
	case strings.HasSuffix(u.Path, "/") || slices.Contains([]string{".", "..", "/"}, last):
		return nil, nil, errors.New("names no file; write an address such as https://example.com/gateway.yaml")
	}
	return u, store, store.Check(u)
}

// schemes lists the schemes for an error.
func schemes(stores map[string]Store) string {
	var names []string
	for scheme := range stores {
		names = append(names, scheme+"://")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// name returns an address for messages: without its query, which may contain a key.
func name(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// sibling returns the address of another file in the same folder, with the same query.
func sibling(u *url.URL, file string) (*url.URL, error) {
	folder, _ := path.Split(u.EscapedPath())
	found, err := url.Parse(u.Scheme + "://" + u.Host + folder + file)
	if err != nil {
		return nil, errors.New("is not a valid address")
	}
	found.RawQuery = u.RawQuery
	return found, nil
}

// CheckPlain refuses an address that is neither https nor on this machine: an attacker on the
// network could replace its configuration.
func CheckPlain(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	local := err == nil && addr.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	if u.Scheme != "https" && !local {
		return errors.New("must be https://, except on this machine: over http, an attacker on the network could replace the configuration")
	}
	return nil
}
