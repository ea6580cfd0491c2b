package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/web/console"
	"github.com/eventgateway/gateway/core/wire"
)

const (
	adminText = "admin-admin-admin-admin"
	readText  = "read-read-read-read-read"
	sendText  = "send-send-send-send-send"
)

// A desk is a gateway with a console, at a time that the test sets.
type desk struct {
	t      *testing.T
	now    time.Time
	tokens []web.Token
	manual func() []byte
}

func newDesk(t *testing.T) *desk {
	return &desk{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), tokens: []web.Token{
		{Text: adminText, Role: core.RoleAdmin}, {Name: "dashboard", Text: readText, Role: core.RoleRead}, {Name: "shop", Text: sendText, Role: core.RoleSend},
	}}
}

// handler returns the routes under the present tokens.
func (d *desk) handler() http.Handler {
	w := newWorld(d.t)
	w.tokens = d.tokens
	w.settings.Console = &web.ConsoleOptions{Tokens: d.tokens, Now: func() time.Time { return d.now }, Manual: d.manual, Sends: true}
	return w.handler()
}

// do sends a request with header fields, each "Name: value".
func (d *desk) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	rec := httptest.NewRecorder()
	d.handler().ServeHTTP(rec, r)
	return rec
}

const asJSON = "Content-Type: application/json"

// signIn returns the header field with the cookie of a token.
func (d *desk) signIn(token string) string {
	d.t.Helper()
	rec := d.do("POST", "/console/session", fmt.Sprintf(`{"token": %q}`, token), asJSON)
	cookies := rec.Result().Cookies()
	if rec.Code != http.StatusOK || len(cookies) != 1 {
		d.t.Fatalf("sign in: %d %s, cookies %v", rec.Code, rec.Body, cookies)
	}
	return "Cookie: " + cookies[0].Name + "=" + cookies[0].Value
}

// TestConsoleCookie: the cookie of a session is sent to the console only, by no page of another site
// and by no script, and over TLS if the browser came over TLS.
func TestConsoleCookie(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		origin string
		secure bool
	}{{"", false}, {"http://example.com", false}, {"https://example.com", true}} {
		rec := d.do("POST", "/console/session", `{"token": "`+readText+`"}`, asJSON, "Origin: "+c.origin)
		if got := rec.Body.String(); got != `{"name":"dashboard","role":"read","open":false,"sends":false}` {
			t.Errorf("sign in: %d %s", rec.Code, got)
		}
		cookie := rec.Result().Cookies()[0]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "" || cookie.Domain != "" || cookie.MaxAge != 12*3600 || cookie.Secure != c.secure {
			t.Errorf("origin %q: cookie %+v", c.origin, cookie)
		}
		if strings.Contains(cookie.Value, readText) {
			t.Errorf("the cookie %q has the token", cookie.Value)
		}
	}
	rec := d.do("DELETE", "/console/session", "", d.signIn(readText))
	if cookie := rec.Result().Cookies()[0]; rec.Code != http.StatusNoContent || cookie.Name != "gateway_console" || cookie.MaxAge >= 0 {
		t.Errorf("sign out: %d, cookie %+v", rec.Code, cookie)
	}
}

// TestConsoleSignIn: a token whose role reads gets a session, and nothing else does.
func TestConsoleSignIn(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		body, header string
		status       int
		want         string
	}{
		{`{"token": "` + adminText + `"}`, asJSON, 200, `{"name":null,"role":"admin","open":false,"sends":true}`},
		{`{"token": "` + adminText + `"}`, "Content-Type: application/json; charset=utf-8", 200, `{"name":null,"role":"admin","open":false,"sends":true}`},
		{`{"token": "` + sendText + `"}`, asJSON, 403, `token "shop" has the role send; the console needs read`},
		{`{"token": "` + adminText + `x"}`, asJSON, 401, `Invalid token`},
		{`{"token": ""}`, asJSON, 401, `Invalid token`},
		{`{}`, asJSON, 401, `Invalid token`},
		{``, asJSON, 401, `Invalid token`},
		{`{"token": 1}`, asJSON, 400, `token must be`},
		{`{"tok": "x"}`, asJSON, 400, `tok`},
		{`{"token": "` + adminText + `"}`, "Content-Type: text/plain", 415, `application/json`},
		{`{"token": "` + adminText + `"}`, "Accept: */*", 415, `application/json`},
	} {
		rec := d.do("POST", "/console/session", c.body, c.header)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("%s with %s: %d %s, want %d %s", c.body, c.header, rec.Code, rec.Body, c.status, c.want)
		}
		if got := len(rec.Result().Cookies()); (got > 0) != (c.status == 200) {
			t.Errorf("%s with %s: %d cookies", c.body, c.header, got)
		}
	}
}

// TestConsoleCodes: a code that was made with a token at most a minute ago signs in as the token does.
func TestConsoleCodes(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		code   string
		status int
		want   string
	}{
		{wire.CodeOf(readText, d.now), 200, `"role":"read"`},
		{wire.CodeOf(adminText, d.now.Add(-time.Minute)), 200, `"role":"admin"`},
		{wire.CodeOf(adminText, d.now.Add(time.Minute)), 200, `"role":"admin"`}, // another clock
		{wire.CodeOf(adminText, d.now.Add(-time.Minute-time.Second)), 401, "Invalid token"},
		{wire.CodeOf(adminText, d.now.Add(time.Minute+time.Second)), 401, "Invalid token"},
		{wire.CodeOf(sendText, d.now), 403, "the console needs read"},
		{wire.CodeOf("another-token", d.now), 401, "Invalid token"},
		{wire.CodeOf("", d.now), 401, "Invalid token"},
		{strings.ReplaceAll(wire.ProofOf(adminText, d.now), " ", "."), 401, "Invalid token"}, // of another use
		{adminText, 401, "Invalid token"},
		{"", 401, "Invalid token"},
	} {
		rec := d.do("POST", "/console/session", fmt.Sprintf(`{"code": %q}`, c.code), asJSON)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("code %q: %d %s, want %d %s", c.code, rec.Code, rec.Body, c.status, c.want)
		}
	}
}

// TestConsoleRoles: a session opens the routes that its token opens, and the API itself knows no cookie.
func TestConsoleRoles(t *testing.T) {
	d := newDesk(t)
	read, admin := d.signIn(readText), d.signIn(adminText)
	for _, c := range []struct {
		method, path, cookie string
		status               int
	}{
		{"GET", "/console/api/stats", read, 200},
		{"GET", "/console/api/stats", admin, 200},
		{"GET", "/console/api/stats", "Cookie: a=b", 401},
		{"GET", "/console/api/stats", "Authorization: Bearer " + adminText, 401},
		{"GET", "/api/stats", read, 401},
		{"GET", "/api/stats", "Authorization: Bearer " + readText, 200},
		{"POST", "/console/api/jobs/retry", read, 403},
		{"POST", "/console/api/jobs/retry", admin, 200},
		{"POST", "/api/jobs/retry", admin, 401},
		{"POST", "/console/events/app/x", admin, 202},
		{"POST", "/console/events/app/x", read, 403},
		{"POST", "/console/events/app/x", "Cookie: a=b", 401},
		{"POST", "/console/events/app/x", "Authorization: Bearer " + sendText, 401},
		{"POST", "/events/app/x", admin, 401},
		{"POST", "/console/webhooks/plain", admin, 404},
		{"GET", "/console/health", admin, 404},
		{"GET", "/console/api/../stats", admin, 404},
		{"GET", "/console/session", read, 200},
		{"GET", "/console/session", "Cookie: a=b", 401},
	} {
		if rec := d.do(c.method, c.path, "", c.cookie); rec.Code != c.status {
			t.Errorf("%s %s with %s: %d %s, want %d", c.method, c.path, c.cookie, rec.Code, rec.Body, c.status)
		}
	}
}

// TestConsoleCrossSite: no page of another site, and no form, makes a change with the cookie.
func TestConsoleCrossSite(t *testing.T) {
	d := newDesk(t)
	admin := d.signIn(adminText)
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{asJSON}, 0}, // it is done
		{[]string{asJSON, "Sec-Fetch-Site: same-origin"}, 0},
		{[]string{asJSON, "Sec-Fetch-Site: cross-site"}, 403},
		{[]string{asJSON, "Origin: https://evil.example"}, 403},
		{[]string{"Content-Type: text/plain", "Sec-Fetch-Site: same-origin"}, 415},
		{[]string{"Content-Type: application/x-www-form-urlencoded"}, 415},
	} {
		for path, done := range map[string]int{"/console/api/jobs/retry": 200, "/console/events/app/order.created": 202} {
			want := c.status
			if want == 0 {
				want = done
			}
			if rec := d.do("POST", path, `{}`, append(c.header, admin)...); rec.Code != want {
				t.Errorf("%s, %v: %d %s, want %d", path, c.header, rec.Code, rec.Body, want)
			}
		}
	}
}

// TestConsoleSessionsEnd: a session ends after twelve hours, when its token changes or goes, and with
// any change of its cookie. It outlives a restart.
func TestConsoleSessionsEnd(t *testing.T) {
	d := newDesk(t)
	read := d.signIn(readText)
	valid := func() bool { return d.do("GET", "/console/api/stats", "", read).Code == http.StatusOK }
	d.now = d.now.Add(12*time.Hour - time.Second)
	if !valid() {
		t.Error("the session ended too early")
	}
	d.now = d.now.Add(time.Second)
	if valid() {
		t.Error("the session did not end")
	}
	read = d.signIn(readText)
	d.tokens[1].Text += "x"
	if valid() {
		t.Error("the session outlives its token")
	}
	d.tokens[1].Text = readText
	d.tokens[1].Role = core.RoleSend
	if valid() {
		t.Error("the session keeps the role that its token had")
	}
	d.tokens = append(d.tokens[:1:1], web.Token{Name: "other", Text: readText, Role: core.RoleRead}) // the same text
	if !valid() {
		t.Error("the session ended with the name of its token")
	}
	admin := d.signIn(adminText)
	name, value, _ := strings.Cut(strings.TrimPrefix(read, "Cookie: "), "=")
	parts, others := strings.Split(value, "."), strings.Split(strings.TrimPrefix(admin, "Cookie: "+name+"="), ".")
	for _, forged := range []string{
		"", ".", "..", value + "x", value[:len(value)-1], strings.Join([]string{"99999999999", parts[1], parts[2]}, "."), strings.Join([]string{parts[0], others[1], parts[2]}, "."),
		strings.Join([]string{parts[0], "", parts[2]}, "."), strings.Join([]string{parts[0], parts[1], ""}, "."), strings.Join([]string{"-1", parts[1], parts[2]}, "."), parts[0] + "." + parts[1],
	} {
		if rec := d.do("GET", "/console/api/stats", "", "Cookie: "+name+"="+forged); rec.Code != http.StatusUnauthorized {
			t.Errorf("cookie %q: %d, want 401", forged, rec.Code)
		}
	}
	// A browser may send cookies of several paths.
	if rec := d.do("GET", "/console/api/stats", "", "Cookie: "+name+"=1.2.3; "+name+"="+value); rec.Code != http.StatusOK {
		t.Errorf("with a second cookie: %d", rec.Code)
	}
}

// TestConsoleOpen: without tokens of the API, there is nothing to sign in to.
func TestConsoleOpen(t *testing.T) {
	d := newDesk(t)
	d.tokens = nil
	if got := d.do("GET", "/console/session", "").Body.String(); got != `{"name":null,"role":"admin","open":true,"sends":true}` {
		t.Errorf("session: %s", got)
	}
	if rec := d.do("GET", "/console/api/stats", ""); rec.Code != http.StatusOK {
		t.Errorf("stats: %d %s", rec.Code, rec.Body)
	}
	if rec := d.do("POST", "/console/session", `{"token": ""}`, asJSON); rec.Code != http.StatusUnauthorized {
		t.Errorf("sign in without tokens: %d %s", rec.Code, rec.Body)
	}
}

// firstScripts are the scripts that the overview needs. Any other one would make the first page slower.
var firstScripts = []string{"api.js", "app.js", "curves.js", "json.js", "lib.js", "overview.js", "place.js", "send.js", "ui.js"}

// TestConsoleFiles: the page is not cached, its files are for ever, and all are small. The page loads the
// scripts early that it needs at first, and no others.
func TestConsoleFiles(t *testing.T) {
	d := newDesk(t)
	if rec := d.do("GET", "/console/", ""); rec.Code != http.StatusPermanentRedirect || rec.Header().Get("Location") != "../console" {
		t.Errorf("/console/: %d to %q", rec.Code, rec.Header().Get("Location"))
	}
	rec := d.do("GET", "/console", "")
	files := console.Load()
	if rec.Code != 200 || rec.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'none'; ") {
		t.Errorf("page: %d %v", rec.Code, rec.Header())
	}
	total := len(files.Page)
	for name, f := range files.Files {
		if link := `<link rel="modulepreload" href="console/assets/` + files.Version + "/" + name + `">`; strings.Contains(string(files.Page), link) != slices.Contains(firstScripts, name) {
			t.Errorf("the first page needs %s: %t, and its links differ: %s", name, slices.Contains(firstScripts, name), files.Page)
		}
		total += len(f.Gzipped())
		path := "/console/assets/" + files.Version + "/" + name
		plain, zipped := d.do("GET", path, ""), d.do("GET", path, "", "Accept-Encoding: br, gzip")
		if plain.Code != 200 || plain.Body.String() != string(f.Text) || plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Content-Type") != f.Type || f.Type == "" {
			t.Errorf("%s: %d, %v", name, plain.Code, plain.Header())
		}
		if zipped.Body.String() != string(f.Gzipped()) || zipped.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(zipped.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s compressed: %d, %v", name, zipped.Code, zipped.Header())
		}
		if name != "lib.js" && strings.Contains(string(f.Text), "innerHTML") {
			t.Errorf("%s writes HTML: payloads are texts", name)
		}
	}
	if total > 60<<10 {
		t.Errorf("the console has %d bytes compressed, want 60 KiB at most", total)
	}
	for _, path := range []string{"/console/assets/0000000000000000/app.js", "/console/assets/" + files.Version + "/index.html", "/console/assets/" + files.Version + "/../app.js", "/console/events"} {
		if rec := d.do("GET", path, ""); rec.Code != http.StatusNotFound || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v, want 404 that is not cached", path, rec.Code, rec.Header())
		}
	}
}

// TestConsoleManual: only a browser that is signed in gets the manual, and a browser that has it does
// not get it again.
func TestConsoleManual(t *testing.T) {
	d := newDesk(t)
	read := d.signIn(readText)
	if rec := d.do("GET", "/console/manual", "", read); rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), "gateway help") {
		t.Errorf("without a manual: %d %s", rec.Code, rec.Body)
	}
	const text = `{"chapters":[]}`
	d.manual = func() []byte { return []byte(text) }
	if rec := d.do("GET", "/console/manual", ""); rec.Code != http.StatusUnauthorized || strings.Contains(rec.Body.String(), "chapters") {
		t.Errorf("without a session: %d %s", rec.Code, rec.Body)
	}
	rec := d.do("GET", "/console/manual", "", read)
	tag := rec.Header().Get("ETag")
	if rec.Code != 200 || rec.Body.String() != text || rec.Header().Get("Cache-Control") != "private, no-cache" || rec.Header().Get("Content-Type") != "application/json" || tag == "" {
		t.Errorf("manual: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if rec := d.do("GET", "/console/manual", "", read, "Accept-Encoding: gzip"); rec.Header().Get("Content-Encoding") != "gzip" || !strings.HasPrefix(rec.Body.String(), "\x1f\x8b") {
		t.Errorf("compressed: %v", rec.Header())
	}
	if rec := d.do("GET", "/console/manual", "", read, "If-None-Match: "+tag); rec.Code != http.StatusNotModified || rec.Body.Len() > 0 {
		t.Errorf("again: %d %s", rec.Code, rec.Body)
	}
	d.manual = func() []byte { return []byte(text + " ") }
	if rec := d.do("GET", "/console/manual", "", read, "If-None-Match: "+tag); rec.Code != 200 {
		t.Errorf("after a change: %d", rec.Code)
	}
}

// TestNoConsole: a gateway without a console has none of its routes.
func TestNoConsole(t *testing.T) {
	h := newWorld(t).handler()
	for _, path := range []string{"/console", "/console/", "/console/session", "/console/manual", "/console/api/stats"} {
		if rec := ask(h, "GET", path, ""); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, rec.Code)
		}
	}
}
