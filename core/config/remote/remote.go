// Package remote reads configurations from elsewhere: from an HTTP server, or from the
// object stores that a program brings along.
//
// The idea to know: whoever may change such a configuration decides where events go,
// so it is trusted with that and no more. It is read over TLS or from this machine,
// nothing redirects it, the address guard of core/egress stands before every
// connection, and [config.Options.Remote] keeps it off the environment and the disk.
//
// A [Source] asks as little as it can: each document is remembered with the version that
// the server gave it. But a version is only a hint. What decides whether something has
// changed is the bytes: some stores give the same bytes a new version whenever they are
// written, and some servers give none.
//
// remote imports core/config, core/egress, which makes its calls, and core/endpoint. The
// libraries of object stores are in its folder cloud, which a [Source] does not import:
// they are larger than all the rest of the program, and functions do without them.
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

// A Store reads objects by their addresses, all of one scheme.
type Store interface {
	// Check tells what is wrong with an address, without asking anybody.
	Check(u *url.URL) error

	// Read returns the object at an address that Check has passed, or no more of it than
	// most bytes. If etag is not empty and still the object's, the result may say Same and
	// hold nothing else. The error of an object that does not exist is
	// [fs.ErrNotExist]; none tells the address's query.
	Read(ctx context.Context, u *url.URL, etag string, most int64) (Object, error)
}

// An Object is what an address holds.
type Object struct {
	Same bool   // it is the one whose etag was given
	ETag string // of this version, opaque; empty if the store tells none
	Body []byte
}

// Is reports whether a -c is an address, and no path of a file.
func Is(raw string) bool { return strings.Contains(raw, "://") }

// parse reads an address and finds its store. It quotes nothing but the scheme.
func parse(raw string, stores map[string]Store) (*url.URL, Store, error) {
	u, err := url.Parse(raw)
	if err != nil { // which would quote all of it
		return nil, nil, errors.New("is not a valid address; write one such as https://example.com/gateway.yaml")
	}
	store, known := stores[u.Scheme]
	switch last := path.Base(u.EscapedPath()); {
	case !known:
		return nil, nil, errors.New("has a scheme that is none of " + schemes(stores))
	case u.User != nil:
		return nil, nil, errors.New("must not hold a user name or password: what is read must be public")
	case u.Host == "":
		return nil, nil, errors.New("has no host; write an address such as https://example.com/gateway.yaml")
	case u.Fragment != "":
		return nil, nil, errors.New("must not hold a #; write %23 for one in a name")
	case strings.HasSuffix(u.Path, "/") || slices.Contains([]string{".", "..", "/"}, last):
		return nil, nil, errors.New("names no file; write an address such as https://example.com/gateway.yaml")
	}
	return u, store, store.Check(u)
}

func schemes(stores map[string]Store) string {
	var names []string
	for scheme := range stores {
		names = append(names, scheme+"://")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// name is an address as it is shown: without its query, which may hold a key.
func name(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// beside is the address of another file in the same folder, with the same query.
func beside(u *url.URL, file string) (*url.URL, error) {
	folder, _ := path.Split(u.EscapedPath())
	sibling, err := url.Parse(u.Scheme + "://" + u.Host + folder + file)
	if err != nil {
		return nil, errors.New("is not a valid address")
	}
	sibling.RawQuery = u.RawQuery
	return sibling, nil
}

// CheckPlain refuses an address at which anybody on the way could put a configuration of
// their own: one that is neither https nor on this machine.
func CheckPlain(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	local := err == nil && addr.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	if u.Scheme != "https" && !local {
		return errors.New("must be https://, except on this machine: over http, whoever is on the way decides what the gateway does")
	}
	return nil
}
