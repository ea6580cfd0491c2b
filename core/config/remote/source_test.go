package remote

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

func TestSourceChanges(t *testing.T) {
	site := newSite(t)
	site.put("/gateway.yaml", events(1))
	s := open(t, site.url+"/gateway.yaml?key=s3cret", "")
	changed(t, s, false) // nothing was loaded
	load(t, s, 1)
	if got, want := site.log(), "200 /gateway.yaml?key=s3cret"; got != want {
		t.Errorf("first Load asks for %s, want %s", got, want)
	}
	changed(t, s, false)
	if got, want := site.log(), "304 /gateway.yaml?key=s3cret"; got != want {
		t.Errorf("Changed asks for %s, want %s", got, want)
	}
	site.put("/gateway.yaml", events(2))
	changed(t, s, true)
	changed(t, s, true) // until it is loaded
	load(t, s, 2)
	changed(t, s, false)
	if got, want := site.log(), strings.Join([]string{"200", "304", "304", "304"}, " /gateway.yaml?key=s3cret, ")+" /gateway.yaml?key=s3cret"; got != want {
		t.Errorf("Changed, Changed, Load, Changed ask for %s, want %s", got, want)
	}
}

// A server may send no version, a new version each time, or a weak one. Then Changed compares
// the bytes.
func TestSourceDoesNotTrustVersions(t *testing.T) {
	serial := 0
	for name, versions := range map[string]func(string) string{
		"none":   func(string) string { return "" },
		"serial": func(string) string { serial++; return `"` + strings.Repeat("x", serial) + `"` },
		"weak":   func(page string) string { return "W/" + byBytes(page) },
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t)
			site.versions = versions
			site.put("/gateway.yaml", events(1))
			s := open(t, site.url+"/gateway.yaml", "")
			load(t, s, 1)
			changed(t, s, false)
			site.put("/gateway.yaml", events(1))
			changed(t, s, false)
			site.put("/gateway.yaml", events(2))
			changed(t, s, true)
			load(t, s, 2)
		})
	}
}

// A server that ignores If-None-Match and says the same version of other bytes.
func TestSourceSeesChangeBehindOneVersion(t *testing.T) {
	site := newSite(t)
	s := open(t, site.url+"/gateway.yaml", "")
	for n := range 3 {
		site.fail(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Write([]byte(events(n)))
		})
		changed(t, s, n > 0)
		load(t, s, n)
	}
}

func TestSourceOverlay(t *testing.T) {
	site := newSite(t)
	site.put("/a%b/gateway.yaml", events(1))
	s := open(t, site.url+"/a%25b/gateway.yaml?key=s3cret", "prod")
	c := load(t, s, 1)
	if got, want := site.log(), "200 /a%25b/gateway.yaml?key=s3cret, 404 /a%25b/gateway.prod.yaml?key=s3cret"; got != want {
		t.Errorf("Load asks for %s, want %s", got, want)
	}
	if w := c.Warnings(); !strings.Contains(w[0].Message, site.url+"/a%25b/gateway.prod.yaml does not exist") {
		t.Errorf("Warnings() = %v, want one of the environment without a file", w)
	}
	changed(t, s, false)
	site.put("/a%b/gateway.prod.yaml", "server: {port: 9000}")
	changed(t, s, true)
	if c := load(t, s, 1); c.Server.Port != 9000 {
		t.Errorf("port %d, want the overlay's", c.Server.Port)
	}
	changed(t, s, false)
	site.put("/a%b/gateway.prod.yaml", "") // which says the same as none, but is there
	changed(t, s, true)
	load(t, s, 1)
	site.remove("/a%b/gateway.prod.yaml")
	changed(t, s, true)
	load(t, s, 1)
	changed(t, s, false)
}

// An overlay that cannot be read is an error. Only an overlay that does not exist is left out.
func TestSourceOverlayForbidden(t *testing.T) {
	site := newSite(t)
	s := open(t, site.url+"/gateway.yaml", "prod")
	site.fail(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/gateway.yaml" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Write([]byte(events(1)))
	})
	_, err := s.Load(soon(t))
	if want := site.url + "/gateway.prod.yaml: answered 403 Forbidden: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Load() = %v, want %q", err, want)
	}
}

// A name of an environment cannot lead to another folder: a wrong name is refused without a
// request.
func TestSourceEnvironment(t *testing.T) {
	site := newSite(t)
	for _, env := range []string{"../x", "a/b", "a?b", "A"} {
		invalid(t, open(t, site.url+"/gateway.yaml", env), "is not a name of an environment; it holds only a-z, 0-9, _ and -")
	}
	if log := site.log(); log != "" {
		t.Errorf("asked for %s", log)
	}
}

func TestSourceInvalid(t *testing.T) {
	site := newSite(t)
	site.put("/gateway.yaml", events(1))
	s := open(t, site.url+"/gateway.yaml", "", "HOME=/root", "GATEWAY_CONFIG_ENV=PORT", "PORT=9000")
	load(t, s, 1)
	at := site.url + "/gateway.yaml:"
	for page, want := range map[string]string{
		"sources: {app: {type: evnt}}":    at + `1:17: sources.app.type: must be one of webhook, event, sns, cron, not "evnt"; did you mean "event"?`,
		"{":                               at + "2:1: is not YAML: did not find expected node content",
		"server: {host: \"${HOME}\"}":     at + "1:10: server.host: a remote configuration may not read the environment variable HOME; name it GATEWAY_VAR_HOME, or list it in GATEWAY_CONFIG_ENV where the gateway runs",
		strings.Repeat("#", 1<<20) + "\n": site.url + "/gateway.yaml: is larger than 1 MiB",
		strings.Repeat("#", 5<<20):        site.url + "/gateway.yaml: is larger than 1 MiB",
		"sources: {app: {type: event, schema: secrets.json}}": at + "1:30: sources.app.schema: a remote configuration comes without other files; write the schema itself here, as in {type: object}",
	} {
		site.put("/gateway.yaml", page)
		changed(t, s, true)
		invalid(t, s, want)
		changed(t, s, false) // it is as wrong as it was
	}
	site.put("/gateway.yaml", "server:\n  port: ${PORT}")
	changed(t, s, true)
	if c := load(t, s, 0); c.Server.Port != 9000 {
		t.Errorf("port %d, want that of the listed variable", c.Server.Port)
	}
}

func TestSourceUnreachable(t *testing.T) {
	site, witness := newSite(t), newSite(t)
	site.put("/gateway.yaml", events(1))
	s := open(t, site.url+"/gateway.yaml?key=s3cret", "")
	load(t, s, 1)
	at := site.url + "/gateway.yaml: "
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
	}
	for want, answer := range map[string]http.HandlerFunc{
		at + "there is nothing at this address":   status(404),
		at + "answered 500 Internal Server Error": status(500),
		at + "answered 206 Partial Content":       status(206),
		at + "protocol: connection closed before there was an answer": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		at + "answered 302 Found: redirects are not followed": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, witness.url, http.StatusFound)
		},
		at + "answered 401 Unauthorized: it must be readable by everyone (some stores also answer so if there is no such object)": status(401),
		at + "answered 403 Forbidden: it must be readable by everyone (some stores also answer so if there is no such object)":    status(403),
	} {
		site.fail(answer)
		unreachable(t, s, want)
	}
	if log := witness.log(); log != "" {
		t.Errorf("followed a redirect: %s", log)
	}
	site.fail(nil)
	changed(t, s, false) // it came back as it was
	site.put("/gateway.yaml", events(2))
	changed(t, s, true)
	load(t, s, 2)
}

// The metadata service of a cloud is never called, since it hands out credentials.
func TestSourceMetadata(t *testing.T) {
	_, err := open(t, "https://169.254.169.254/latest/gateway.yaml", "").Load(soon(t))
	if want := "https://169.254.169.254/latest/gateway.yaml: blocked: 169.254.169.254 may be a cloud's metadata service"; err == nil || err.Error() != want {
		t.Errorf("Load() = %v, want %q", err, want)
	}
}

// A reply 304 to an unconditional request is an error: there is no text to keep.
func TestSourceUnconditional304(t *testing.T) {
	site := newSite(t)
	site.fail(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) })
	_, err := open(t, site.url+"/gateway.yaml", "").Load(soon(t))
	if want := site.url + "/gateway.yaml: answered 304 Not Modified"; err == nil || err.Error() != want {
		t.Errorf("Load() = %v, want %q", err, want)
	}
}

func TestSourceGivesUp(t *testing.T) {
	site := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	site.fail(func(w http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err := open(t, site.url+"/gateway.yaml", "").Load(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Load() = %v, want %v", err, context.Canceled)
	}
}

// Polls and SIGHUP may come at once.
func TestSourceConcurrently(t *testing.T) {
	site := newSite(t)
	site.put("/gateway.yaml", events(1))
	s := open(t, site.url+"/gateway.yaml", "prod")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.Load(t.Context()) })
		all.Go(func() { s.Changed(t.Context()) })
	}
	all.Wait()
	load(t, s, 1)
}

// A shelf is a store of another scheme.
type shelf map[string]string

func (shelf) Check(u *url.URL) error {
	if u.Host != "shop" {
		return fs.ErrInvalid
	}
	return nil
}

func (s shelf) Read(_ context.Context, u *url.URL, etag string, most int64) (Object, error) {
	body, ok := s[u.Path]
	switch {
	case !ok:
		return Object{}, fs.ErrNotExist
	case etag != "":
		return Object{Same: true}, nil
	case most != config.MaxFile+1:
		return Object{}, fs.ErrInvalid
	}
	return Object{Body: []byte(body), ETag: "1"}, nil
}

func TestSourceOfStore(t *testing.T) {
	stores := map[string]Store{"s3": shelf{"/a/gateway.yaml": events(1), "/a/gateway.prod.yaml": "server: {port: 9000}"}}
	s, err := Open("s3://shop/a/gateway.yaml?x=y", Options{Env: "prod", Client: newClient(t), Stores: stores})
	if err != nil {
		t.Fatal(err)
	}
	if c := load(t, s, 1); c.Server.Port != 9000 || s.Name() != "s3://shop/a/gateway.yaml" {
		t.Errorf("Load() = port %d; Name() = %s", c.Server.Port, s.Name())
	}
	changed(t, s, false)
}

// The documents that [Source] hands over are files as others are.
func TestReadingIsFileSystem(t *testing.T) {
	site := newSite(t)
	site.put("/gateway.yaml", events(1))
	r := &reading{source: open(t, site.url+"/gateway.yaml", ""), ctx: soon(t), documents: map[string]document{}}
	data, err := fs.ReadFile(r, filepath.ToSlash("http:/whatever/gateway.yaml"))
	if err != nil || string(data) != events(1) {
		t.Errorf("ReadFile() = %q, %v", data, err)
	}
}
