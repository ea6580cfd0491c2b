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

// Options say how a configuration is read.
type Options struct {
	// Env names the overlay, such as local for gateway.local.yaml beside gateway.yaml; empty
	// means none. One that does not exist changes nothing.
	Env string
	// Lookup reads the environment; see [config.Options.Remote] for what of it.
	Lookup func(string) (string, bool)
	// Client makes the calls to http:// and https:// addresses.
	Client *egress.Client
	// Stores are those for other addresses, by scheme; nil means none.
	Stores map[string]Store
}

// A Source is a configuration at an address. It is safe for concurrent use.
type Source struct {
	o     Options
	base  *url.URL
	store Store

	mu     sync.Mutex
	known  map[string]document // what was read last, by the name of the file
	loaded map[string]digest   // what the last Load was made of
}

// A document is one file as it was read last.
type document struct {
	absent bool
	etag   string
	body   []byte
}

type digest [sha256.Size]byte

// digest is the same for documents that say the same.
func (d document) digest() digest {
	if d.absent {
		return digest{}
	}
	return sha256.Sum256(d.body)
}

// Open makes a source of an address. Nobody is asked yet. Errors do not quote the
// address, which may hold a key.
func Open(address string, o Options) (*Source, error) {
	stores := map[string]Store{"http": server{o.Client}, "https": server{o.Client}}
	maps.Copy(stores, o.Stores)
	u, store, err := parse(address, stores)
	if err != nil {
		return nil, fmt.Errorf("the address of the configuration %w", err)
	}
	return &Source{o: o, base: u, store: store, known: map[string]document{}}, nil
}

// Name is the address without its query.
func (s *Source) Name() string { return name(s.base) }

// Load reads the configuration as it is now. The error is [config.Problems] if something
// is wrong with what was read, or [context.Canceled], else it tells why nothing could be.
func (s *Source) Load(ctx context.Context) (*config.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reading{source: s, ctx: ctx, documents: map[string]document{}}
	c, err := config.Load(config.Options{FS: r, Path: s.Name(), Env: s.o.Env, Lookup: s.o.Lookup, Remote: true})
	if r.err != nil {
		return nil, r.err
	}
	s.known, s.loaded = r.documents, digests(r.documents)
	return c, err
}

// Changed reports whether what is there differs from what the last successful or
// unsuccessful Load was made of. Before the first one nothing has changed.
func (s *Source) Changed(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file := range s.known {
		d, err := s.read(ctx, file)
		if err != nil {
			return false, err
		}
		s.known[file] = d
	}
	return !maps.Equal(s.loaded, digests(s.known)), nil
}

func digests(documents map[string]document) map[string]digest {
	all := map[string]digest{}
	for file, d := range documents {
		all[file] = d.digest()
	}
	return all
}

// read asks for a file, with what is known of it.
func (s *Source) read(ctx context.Context, file string) (document, error) {
	u := s.base
	if file != path.Base(u.EscapedPath()) {
		var err error
		if u, err = beside(s.base, file); err != nil {
			return document{}, err
		}
	}
	reading, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	had := s.known[file]
	got, err := s.store.Read(reading, u, had.etag, config.MaxFile+1)
	switch {
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

// A reading is the file system of one Load: it asks for the files that Load opens.
type reading struct {
	source    *Source
	ctx       context.Context
	documents map[string]document
	err       error // why one could not be read
}

// Open reads a file beside the base file, or that itself. Of its name only the last part
// counts: Load has no other folder to ask for.
func (r *reading) Open(name string) (fs.File, error) {
	if r.err != nil { // Load asks for the overlay whatever became of the base file
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
