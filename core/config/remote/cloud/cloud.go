// Package cloud has the object stores of core/config/remote: S3 and compatible stores, Google
// Cloud Storage, and Azure Blob Storage, through gocloud.dev/blob.
//
// The idea to know: objects are public, so there are no credentials. AWS's library looks for some,
// retries, follows redirects and measures by itself, and would do so past the address guard. Here it
// gets no credentials, one try, and a client of core/egress that it cannot avoid. An object of Google
// or Azure takes two requests and no library, see direct.go. Only the address of the object can name
// an endpoint, no file can.
//
// The version of an object is requested first, and the object is read only if the version is
// new. All three providers do that in the same way. They differ in conditional reads, or have
// none.
//
// cloud is the only importer of gocloud.dev and of AWS's libraries, which are 1.8 MB of the
// program; functions do without it. It imports core, core/once, core/config/remote, core/egress
// and core/endpoint.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config/remote"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/once"
)

// Stores returns the stores of s3, gs and az addresses. client makes the calls. lookup reads
// the environment: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_DEFAULT_REGION and
// STORAGE_EMULATOR_HOST, and no credentials.
func Stores(client *egress.Client, lookup func(string) (string, bool)) map[string]remote.Store {
	env := func(name string) string { v, _ := lookup(name); return v }
	return map[string]remote.Store{
		"s3": store{client, amazon{env}},
		"gs": store{client, google{env}},
		"az": store{client, azure{}},
	}
}

// A provider knows one kind of bucket. Its implementations have no state but the environment.
type provider interface {
	// parameters lists the permitted parameters of an address.
	parameters() []string

	// locate returns the place of an object, or the fault of its address. The address has only
	// permitted parameters.
	locate(u *url.URL) (place, error)

	// open opens a bucket. It makes no call.
	open(ctx context.Context, p place, calls *http.Client) (*blob.Bucket, error)
}

// A place is the position of an object.
type place struct {
	bucket, key string
	endpoint    string // the provider's endpoint, "" for the standard one
	region      string // of S3
}

// A store reads the objects of a provider.
type store struct {
	client *egress.Client
	provider
}

// Check returns the fault of an address.
func (s store) Check(u *url.URL) error {
	_, err := s.place(u)
	return err
}

func (s store) place(u *url.URL) (place, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return place{}, errors.New("has a query that cannot be read")
	}
	for name := range query {
		if !slices.Contains(s.parameters(), name) {
			return place{}, fmt.Errorf("has an unknown parameter %q; %s:// has %s", name, u.Scheme, strings.Join(s.parameters(), " and "))
		}
	}
	if u.Port() != "" {
		return place{}, errors.New("must not hold a port: the name of a bucket or an account has none")
	}
	p, err := s.locate(u)
	if err != nil || p.endpoint == "" {
		return p, err
	}
	return p, checkEndpoint(p.endpoint)
}

// checkEndpoint checks the address of a provider.
func checkEndpoint(raw string) error {
	u, err := endpoint.ParseURL(raw)
	if err == nil && strings.ContainsAny(raw, "?#") {
		err = errors.New("must not hold a query")
	}
	if err == nil {
		err = remote.CheckPlain(u)
	}
	if err != nil {
		return fmt.Errorf("has an endpoint that %w", err)
	}
	return nil
}

// bucketForm has the common rules of S3 and Google Cloud Storage. The providers check the
// length of a name themselves: counted repetitions take long to compile.
var bucketForm = once.Regexp(`^[a-z0-9][a-z0-9._-]*[a-z0-9]$`)

// object returns the place of an object whose bucket is the host of the address.
func object(u *url.URL) (place, error) {
	if !bucketForm().MatchString(u.Host) {
		return place{}, errors.New("has no valid bucket name after ://; such a name holds a-z, 0-9, dots, - and _")
	}
	return place{bucket: u.Host, key: strings.TrimPrefix(u.Path, "/"), endpoint: u.Query().Get("endpoint")}, nil
}

// Read requests the object's version, and reads the object if the version is not etag.
func (s store) Read(ctx context.Context, u *url.URL, etag string, most int64) (remote.Object, error) {
	p, err := s.place(u)
	if err != nil {
		return remote.Object{}, err
	}
	// Each reading has a client of its own, with a witness of its own.
	calls := s.client.HTTPClient(remote.Timeout)
	w := &witness{next: calls.Transport, start: time.Now()}
	calls.Transport = w
	bucket, err := s.open(ctx, p, calls)
	if err != nil {
		return remote.Object{}, fmt.Errorf("cannot be requested: %w", err)
	}
	defer bucket.Close()
	var o remote.Object
	err = core.Contain(func() (err error) { o, err = s.read(ctx, bucket, p.key, etag, most); return err })
	switch panicked := (*core.Panic)(nil); {
	case errors.As(err, &panicked):
		return remote.Object{}, unreadable{panicked}
	case err != nil:
		return remote.Object{}, w.explain(ctx, err)
	}
	return o, nil
}

// unreadable is the error for a reply that is not one of an object store. AWS's library may fail or
// panic on it: it dereferences pointers to header fields and to parts of a body that a reply may
// lack.
type unreadable struct{ cause error }

func (unreadable) Error() string {
	return "protocol: the server's reply is not one of an object store; check the endpoint in the address, and that no proxy answers in its place"
}

func (u unreadable) Unwrap() error { return u.cause }

func (s store) read(ctx context.Context, bucket *blob.Bucket, key, etag string, most int64) (remote.Object, error) {
	found, err := bucket.Attributes(ctx, key)
	if err != nil {
		return remote.Object{}, err
	}
	if found.ETag == etag && etag != "" {
		return remote.Object{Same: true}, nil
	}
	r, err := bucket.NewReader(ctx, key, nil)
	if err != nil {
		return remote.Object{}, err
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, most))
	return remote.Object{ETag: found.ETag, Body: body}, err
}

// A witness remembers the result of the last call. AWS's library reports it at length, and with
// addresses.
type witness struct {
	next   http.RoundTripper
	start  time.Time
	err    error
	status int
	region string // S3's region of the bucket, if it is another one
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	w.status, w.region = 0, ""
	var response *http.Response
	if response, w.err = w.next.RoundTrip(r); w.err == nil {
		w.status, w.region = response.StatusCode, response.Header.Get("X-Amz-Bucket-Region")
	}
	return response, w.err
}

// explain returns the reason why an object was not read.
func (w *witness) explain(ctx context.Context, err error) error {
	switch {
	case w.err != nil:
		return egress.Explain(ctx, w.err, w.start)
	case w.status == http.StatusNotFound:
		return fs.ErrNotExist
	case w.status == http.StatusMovedPermanently && regionForm().MatchString(w.region):
		return fmt.Errorf("is in another region; add ?region=%s to its address", w.region)
	case w.status >= 300:
		return remote.Refused(w.status)
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fs.ErrNotExist
	case ctx.Err() != nil || errors.As(err, new(net.Error)) || errors.Is(err, io.ErrUnexpectedEOF):
		return egress.Explain(ctx, err, w.start)
	}
	return unreadable{err}
}
