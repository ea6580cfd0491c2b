package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
)

// Options say how to read a configuration.
type Options struct {
	// Env names the overlay, such as local for gateway.local.yaml beside gateway.yaml; empty
	// means none. An overlay that does not exist has no effect.
	Env string
	// Lookup reads the environment; [config.Options.Remote] says which part.
	Lookup func(string) (string, bool)
	// Client makes the calls to http:// and https:// addresses.
	Client *egress.Client
	// Stores are the stores of other addresses, by scheme; nil means none.
	Stores map[string]Store
}

// A Source is a configuration at an address. It is safe for concurrent use.
type Source struct {
	o     Options
	base  *url.URL
	store Store

	mu     sync.Mutex
	known  map[string]document // the documents as they were last read, by the name of the file
	loaded map[string]digest   // the documents of the last Load
}

// A document is one file as it was last read. A missing overlay is a document too: its coming
// is a change.
type document struct {
	absent bool
	etag   string
	body   []byte
}

// A digest is compared in place of a document, so that the last Load need not keep its bodies.
type digest [sha256.Size]byte

// digest returns the same value for documents with the same bytes.
func (d document) digest() digest {
	if d.absent {
		return digest{}
	}
	return sha256.Sum256(d.body)
}

// Open makes a source of an address. It makes no call. Errors do not quote the address, which
// may contain a key.
func Open(address string, o Options) (*Source, error) {
	// Object stores come from the caller, since their libraries are large.
	stores := map[string]Store{"http": server{o.Client}, "https": server{o.Client}}
	maps.Copy(stores, o.Stores)
	u, store, err := parse(address, stores)
	if err != nil {
		return nil, fmt.Errorf("the address of the configuration %w", err)
	}
	return &Source{o: o, base: u, store: store, known: map[string]document{}}, nil
}

// Name returns the address without its query.
func (s *Source) Name() string { return name(s.base) }

// Load reads the present configuration. The error is [config.Problems] if the documents have
// faults, or [context.Canceled]. Any other error is the reason why a document could not be
// read.
func (s *Source) Load(ctx context.Context) (*config.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reading{source: s, ctx: ctx, documents: map[string]document{}}
	c, err := config.Load(config.Options{FS: r, Path: s.Name(), Env: s.o.Env, Lookup: s.o.Lookup, Remote: true})
	if r.err != nil {
		return nil, r.err
	}
	// They are kept also if the configuration is invalid: otherwise Changed would report the
	// same file again and again.
	s.known, s.loaded = r.documents, digests(r.documents)
	return c, err
}

// Changed reports whether the present documents differ from the documents of the last Load,
// successful or not. Before the first Load it returns false.
func (s *Source) Changed(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Only files that the last Load opened are read, the missing overlay included.
	for file := range s.known {
		d, err := s.read(ctx, file)
		if err != nil {
			return false, err
		}
		s.known[file] = d
	}
	return !maps.Equal(s.loaded, digests(s.known)), nil
}

// digests returns the digests of all documents, by the name of the file.
func digests(documents map[string]document) map[string]digest {
	all := map[string]digest{}
	for file, d := range documents {
		all[file] = d.digest()
	}
	return all
}

// read requests a file, with its known version.
func (s *Source) read(ctx context.Context, file string) (document, error) {
	u := s.base
	if file != path.Base(u.EscapedPath()) {
		var err error
		if u, err = sibling(s.base, file); err != nil {
			return document{}, err
		}
	}
	reading, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	had := s.known[file]
	got, err := s.store.Read(reading, u, had.etag, config.MaxFile+1)
	switch {
	// The caller gave up; that is no fault of the server.
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return document{}, ctx.Err()
	case errors.Is(err, fs.ErrNotExist) && u == s.base:
		return document{}, fmt.Errorf("%s: there is nothing at this address", name(u))
	case errors.Is(err, fs.ErrNotExist):
		return document{absent: true}, nil
	case err != nil:
		return document{}, fmt.Errorf("%s: %w", name(u), err)
	case got.Same:
		return had, nil
	}
	return document{etag: got.ETag, body: got.Body}, nil
}

// A reading is the file system of one Load: it requests the files that Load opens. It gives
// config the interface of a file system, so that Load need not know about the network.
type reading struct {
	source    *Source
	ctx       context.Context
	documents map[string]document
	err       error // the reason why a file could not be read
}

// Open reads the base file, or a file beside it. Only the last part of the name counts, since
// Load opens files in one folder.
func (r *reading) Open(name string) (fs.File, error) {
	if r.err != nil { // Load opens the overlay even after the base file failed
		return nil, r.err
	}
	file := path.Base(name)
	d, err := r.source.read(r.ctx, file)
	if err != nil {
		r.err = err
		return nil, err
	}
	r.documents[file] = d
	if d.absent {
		return nil, fs.ErrNotExist
	}
	return opened{bytes.NewReader(d.body), file}, nil
}

// opened is a document as a file.
type opened struct {
	*bytes.Reader
	name string
}

func (o opened) Stat() (fs.FileInfo, error) { return o, nil }
func (o opened) Close() error               { return nil }
func (o opened) Name() string               { return o.name }
func (o opened) Mode() fs.FileMode          { return 0o444 }
func (o opened) ModTime() time.Time         { return time.Time{} }
func (o opened) IsDir() bool                { return false }
func (o opened) Sys() any                   { return nil }

var _ io.Reader = opened{}
