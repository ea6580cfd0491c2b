package cloud

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/config/remote"
	"github.com/eventgateway/gateway/core/egress"
)

func source(t *testing.T, address string, variables map[string]string) (*remote.Source, error) {
	client := egress.New(egress.Options{AllowPrivate: true, Version: "1.2.3"})
	t.Cleanup(client.Close)
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	return remote.Open(address, remote.Options{Lookup: lookup, Client: client, Stores: Stores(client, lookup)})
}

func TestAddresses(t *testing.T) {
	const ok = ""
	plain := "has an endpoint that must be https://, except on this machine"
	for _, c := range []struct {
		address, variable, want string
	}{
		{"s3://bucket/gateway.yaml", "", ok},
		{"s3://my.bucket-1/a/b%20c/gateway.yaml?region=eu-west-1", "", ok},
		{"s3://bucket/k?endpoint=https://s3.example.com", "", ok},
		{"s3://bucket/k?endpoint=http://127.0.0.1:9000", "", ok},
		{"s3://bucket/k?endpoint=http://s3.example.com", "", plain},
		{"s3://bucket/k?endpoint=s3.example.com", "", "has an endpoint that must start with http:// or https://"},
		{"s3://bucket/k?endpoint=https://u:s3cret@s3.example.com", "", "has an endpoint that must not hold a user name"},
		{"s3://bucket/k?endpoint=https://s3.example.com?s3cret", "", "has an endpoint that must not hold a query"},
		{"gs://bucket/k?endpoint=https://storage.example.com%3F", "", "has an endpoint that must not hold a query"},
		{"gs://bucket/k?endpoint=https://storage.example.com%23", "", "has an endpoint that must not hold a query"},
		{"s3://bucket/k", "AWS_ENDPOINT_URL_S3=http://s3.example.com", plain},
		{"s3://bucket/k", "AWS_ENDPOINT_URL_S3=http://localhost:9000", ok},
		{"s3://bucket/k?endpoint=https://s3.example.com", "AWS_ENDPOINT_URL_S3=http://s3.example.com", ok},
		{"s3://bucket/k?region=a.b/c", "", "has no valid region; a region is a name such as eu-west-1"},
		{"s3://bucket/k", "AWS_REGION=a.b", "has no valid region"},
		{"s3://bucket/k?versionId=s3cret", "", `has an unknown parameter "versionId"; s3:// has endpoint and region`},
		{"s3://bucket/k?a;b", "", "has a query that cannot be read"},
		{"s3://bucket:80/k", "", "must not hold a port"},
		{"s3://Bucket/k", "", "has no valid bucket name after ://"},
		{"s3://bucket", "", "names no file"},
		{"gs://bucket/gateway.yaml", "", ok},
		{"gs://bucket/k?endpoint=http://127.0.0.1:9000", "", ok},
		{"gs://bucket/k?endpoint=http://10.0.0.1:9000", "", plain},
		{"gs://bucket/k?region=x", "", `has an unknown parameter "region"; gs:// has endpoint`},
		{"gs://bucket/k", "STORAGE_EMULATOR_HOST=127.0.0.1:9000", ok},
		{"gs://bucket/k", "STORAGE_EMULATOR_HOST=http://localhost:9000/", ok},
		{"gs://bucket/k", "STORAGE_EMULATOR_HOST=storage.example.com:80", plain},
		{"gs://b%2F/k", "", "is not a valid address"},
		{"az://account/container/gateway.yaml", "", ok},
		{"az://account/$web/a/gateway.yaml", "", ok},
		{"az://account/container/k?endpoint=http://127.0.0.1:10000/account", "", ok},
		{"az://account/container/k?endpoint=http://example.com/account", "", plain},
		{"az://account/container/k?sig=s3cret", "", `has an unknown parameter "sig"; az:// has endpoint`},
		{"az://account/gateway.yaml", "", "must name a blob, as in az://account/container/gateway.yaml"},
		{"az://account/Container/gateway.yaml", "", "has no valid container name after the account"},
		{"az://my-account/container/gateway.yaml", "", "has no valid storage account name after ://"},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		_, err := source(t, c.address, map[string]string{name: value})
		switch {
		case c.want == ok && err != nil:
			t.Errorf("Open(%s) with %s = %v, want nil", c.address, c.variable, err)
		case c.want != ok && (err == nil || !strings.HasPrefix(err.Error(), "the address of the configuration "+c.want) || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("Open(%s) with %s = %v, want %q", c.address, c.variable, err, c.want)
		}
	}
}

// A recorder is an HTTP server that takes the place of a provider. It records the calls.
type recorder struct {
	url string

	mu     sync.Mutex
	asked  []string
	header http.Header // of the last call
}

func newRecorder(t *testing.T, answer http.HandlerFunc) *recorder {
	s := &recorder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = url.QueryEscape(server.URL)
	return s
}

func (s *recorder) record(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.header = append(s.asked, r.Method+" "+r.URL.Path), r.Header.Clone()
}

// recorded returns the calls, and the header of the last one.
func (s *recorder) recorded() (calls string, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, ", "), s.header
}

// A store makes one call to the configured endpoint: it neither retries nor follows redirects,
// and it sends no credentials. Its errors contain no text of the reply.
func TestCalls(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "AZURE_STORAGE_KEY": "s3cret", "AZURE_STORAGE_SAS_TOKEN": "s3cret"} {
		t.Setenv(name, value)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		what, want string
		answer     http.HandlerFunc
	}{
		{"unavailable", "answered 503 Service Unavailable", status(503)},
		{"slow down", "answered 429 Too Many Requests", status(429)},
		{"closed", "answered 403 Forbidden: it must be readable by everyone (some stores also answer so if there is no such object)", status(403)},
		{"missing", "there is nothing at this address", status(404)},
		{"cut", "protocol: connection closed before there was an answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"moved", "answered 307 Temporary Redirect: redirects are not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/s3cret", http.StatusTemporaryRedirect)
		}},
		{"hostile", "answered 500 Internal Server Error", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(500)
			w.Write([]byte("<Error><Code>\x1b[31ms3cret</Code><Message>s3cret</Message></Error>"))
		}},
	} {
		for address, call := range map[string]string{
			"s3://bucket/a/k":                "HEAD /bucket/a/k",
			"gs://bucket/a/k":                "GET /storage/v1/b/bucket/o/a/k",
			"az://accountname/container/a/k": "HEAD /container/a/k",
		} {
			there := newRecorder(t, c.answer)
			s, err := source(t, address+"?endpoint="+there.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Load(t.Context())
			if err == nil || err.Error() != address+": "+c.want {
				t.Errorf("%s: Load(%s) = %v, want %q", c.what, address, err, c.want)
			}
			got, header := there.recorded()
			if got != call {
				t.Errorf("%s: Load(%s) calls %s, want %s", c.what, address, got, call)
			}
			if header.Get("Authorization") != "" || strings.Contains(fmt.Sprint(header), "s3cret") {
				t.Errorf("%s: Load(%s) sends credentials: %v", c.what, address, header)
			}
		}
	}
}

// The error for a bucket in another region names the region, if the reply has a valid name.
func TestRegion(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "is in another region; add ?region=eu-west-1 to its address",
		"\"evil":    "answered 301 Moved Permanently: redirects are not followed",
		"":          "answered 301 Moved Permanently: redirects are not followed",
	} {
		there := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", region)
			w.WriteHeader(http.StatusMovedPermanently)
		})
		s, err := source(t, "s3://bucket/k?endpoint="+there.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context()); err == nil || err.Error() != "s3://bucket/k: "+want {
			t.Errorf("Load() = %v, want %q", err, want)
		}
	}
}

// A reply without an end is cut off at the bound, and a stalled reply ends with a timeout.
func TestBounds(t *testing.T) {
	endless := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		for r.Method == http.MethodGet {
			if _, err := w.Write([]byte(strings.Repeat("#", 1<<16))); err != nil {
				return
			}
		}
	})
	s, err := source(t, "s3://bucket/k?endpoint="+endless.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil || err.Error() != "s3://bucket/k: is larger than 1 MiB" {
		t.Errorf("Load() = %v, want it to be too large", err)
	}
	for _, scheme := range []string{"s3://bucket/k", "gs://bucket/k", "az://accountname/container/k"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		stalled := newRecorder(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s, err := source(t, scheme+"?endpoint="+stalled.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(ctx); err == nil || !strings.HasPrefix(err.Error(), scheme+": timeout: no answer within ") {
			t.Errorf("Load() = %v, want a timeout", err)
		}
	}
}

// Characters that have a meaning in an address are a part of an object's name.
func TestNames(t *testing.T) {
	const name = "a b/c#d?e%f/g;h+i"
	for address, call := range map[string]string{
		"s3://bucket/":                "HEAD /bucket/" + name,
		"gs://bucket/":                "GET /storage/v1/b/bucket/o/" + name,
		"az://accountname/container/": "HEAD /container/" + name,
	} {
		there := newRecorder(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) })
		s, err := source(t, address+url.PathEscape(name)+"?endpoint="+there.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Load(t.Context())
		if got, _ := there.recorded(); got != call || err == nil {
			t.Errorf("Load(%s%s) = %v and calls %s, want %s and that there is nothing", address, name, err, got, call)
		}
	}
}

// The request for the content of an object of Google names the version whose ETag is kept, since a cache
// may have an earlier version.
func TestGenerationIsRead(t *testing.T) {
	var queries []string
	there := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		if r.URL.Query().Get("alt") == "json" {
			w.Write([]byte(`{"etag": "CJ", "generation": "1700000000000001"}`))
		}
	})
	s, err := source(t, "gs://bucket/k?endpoint="+there.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Load(t.Context()) // an empty file is no configuration
	if want := []string{"alt=json&fields=etag,generation", "alt=media&generation=1700000000000001"}; !slices.Equal(queries, want) {
		t.Errorf("the queries are %q, want %q", queries, want)
	}
	changed, err := s.Changed(t.Context())
	if calls := len(queries); calls != 3 {
		t.Errorf("Changed() = %v, %v after %d calls, want the description alone", changed, err, calls-2)
	}
}

// An object that is replaced between the two requests is read all the same: its version is gone, and the
// file must not count as missing.
func TestReplacedMeanwhile(t *testing.T) {
	newest := 1
	there := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked := r.URL.Query().Get("generation"); {
		case r.URL.Query().Get("alt") == "json":
			fmt.Fprintf(w, `{"etag": "E%d", "generation": "%d"}`, newest, newest)
		case newest == 1: // the first read: the object is replaced just before
			newest = 2
			w.WriteHeader(http.StatusNotFound)
		case asked == "2":
			w.Write([]byte("server: {port: 1234}\nsources: {app: {type: event}}\n"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	s, err := source(t, "gs://bucket/k?endpoint="+there.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(t.Context())
	if err != nil || c.Server.Port != 1234 {
		t.Errorf("Load() = %+v, %v, want the new version, with port 1234", c, err)
	}
}
