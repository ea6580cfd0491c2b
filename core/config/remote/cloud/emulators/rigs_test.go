// Package emulators reads configurations from emulators of the object stores, and from a
// plain HTTP server. The emulators are gofakes3, fake-gcs-server and azurite, which is
// Microsoft's own. The package is a module of its own, so that the gateway does not depend on
// them.
package emulators

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// A rig is a store that holds the files of one folder.
type rig struct {
	*front
	folder, query string // before and after a file's name in an address
	put           func(t *testing.T, file, text string)
	remove        func(t *testing.T, file string)
}

// address returns the address of a file.
func (r *rig) address(file string) string { return r.folder + "/" + file + r.query }

// rigs are the stores, by the schemes of their addresses.
var rigs = map[string]func(t *testing.T) *rig{"http": startHTTP, "s3": startS3, "gs": startGS, "az": startAZ}

// each runs a test on each of the stores.
func each(t *testing.T, test func(t *testing.T, r *rig)) {
	for scheme, start := range rigs {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// A front is a proxy of a store, which can answer in its place.
type front struct {
	url   string
	store http.Handler
	out   atomic.Pointer[http.HandlerFunc] // answers instead of the store, if it is set
	gets  atomic.Int64                     // answers with an object in them
}

func newFront(t *testing.T, store http.Handler) *front {
	f := &front{store: store}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if out := f.out.Load(); out != nil {
			(*out)(w, r)
			return
		}
		if r.Method == http.MethodGet && r.URL.Query().Get("alt") != "json" {
			f.gets.Add(1)
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// fail answers every request by the given handler; nil lets the store answer again.
func (f *front) fail(answer http.HandlerFunc) {
	if answer == nil {
		f.out.Store(nil)
		return
	}
	f.out.Store(&answer)
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

func startHTTP(t *testing.T) *rig {
	folder := newFolder()
	f := newFront(t, folder)
	return &rig{front: f, folder: f.url + "/a/b", query: "?sig=s3cret", put: folder.put, remove: folder.remove}
}

func startS3(t *testing.T) *rig {
	store := s3mem.New()
	check(t, store.CreateBucket("cfg"))
	f := newFront(t, gofakes3.New(store).Server())
	return &rig{
		front: f, folder: "s3://cfg/a/b", query: "?region=eu-west-1&endpoint=" + url.QueryEscape(f.url),
		put: func(t *testing.T, file, text string) {
			_, err := store.PutObject("cfg", "a/b/"+file, map[string]string{}, strings.NewReader(text), int64(len(text)), nil)
			check(t, err)
		},
		remove: func(t *testing.T, file string) {
			_, err := store.DeleteObject("cfg", "a/b/"+file)
			check(t, err)
		},
	}
}

func startGS(t *testing.T) *rig {
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Writer: io.Discard})
	check(t, err)
	t.Cleanup(server.Stop)
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "cfg"})
	f := newFront(t, hostless(server.HTTPHandler()))
	return &rig{
		front: f, folder: "gs://cfg/a/b", query: "?endpoint=" + url.QueryEscape(f.url),
		put: func(t *testing.T, file, text string) {
			server.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "cfg", Name: "a/b/" + file}, Content: []byte(text)})
		},
		remove: func(t *testing.T, file string) {
			check(t, server.Backend().DeleteObject("cfg", "a/b/"+file))
		},
	}
}

// hostless has a server think that it is asked as Google is: the emulator tells objects
// from their metadata by the host.
func hostless(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "storage.googleapis.com"
		server.ServeHTTP(w, r)
	})
}

func startAZ(t *testing.T) *rig {
	endpoint := servers.Azure(t)
	folder := fmt.Sprintf("cfg-%d", containers.Add(1))
	key, err := container.NewSharedKeyCredential(servers.AzureAccount, servers.AzureKey)
	check(t, err)
	owner, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+folder, key, nil)
	check(t, err)
	public := container.PublicAccessTypeBlob
	_, err = owner.Create(t.Context(), &container.CreateOptions{Access: &public})
	check(t, err)
	target, err := url.Parse(endpoint)
	check(t, err)
	target.Path = ""
	f := newFront(t, httputil.NewSingleHostReverseProxy(target))
	blob := func(file string) *blockblob.Client { return owner.NewBlockBlobClient("a/b/" + file) }
	return &rig{
		front: f, folder: "az://" + servers.AzureAccount + "/" + folder + "/a/b", query: "?endpoint=" + url.QueryEscape(f.url+"/"+servers.AzureAccount),
		put: func(t *testing.T, file, text string) {
			_, err := blob(file).UploadBuffer(t.Context(), []byte(text), nil)
			check(t, err)
		},
		remove: func(t *testing.T, file string) {
			_, err := blob(file).Delete(context.WithoutCancel(t.Context()), nil)
			check(t, err)
		},
	}
}

// containers counts those of the one emulator of Azure.
var containers atomic.Int64

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
