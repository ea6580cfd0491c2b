package web

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web/console"
	"github.com/eventgateway/gateway/core/wire"
)

// The operator console is one page with its scripts, which call the API. A browser signs in with a
// token, and gets a cookie in exchange: see [sessions]. The cookie counts below consolePath only. A
// request to consolePath/api/... or consolePath/events/... with the cookie is served as the request to
// /api/... or /events/... with the token. So the API knows no cookies, and its routes check roles, for
// the console as for other clients.

// consolePath is the path of the console, below which its cookie is sent.
const consolePath = "/console"

// consolePolicy is the Content-Security-Policy of the page and its files.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// foreverCached is the Cache-Control of files whose path has a hash of their content.
const foreverCached = "public, max-age=31536000, immutable"

// ConsoleOptions are the dependencies of the console.
type ConsoleOptions struct {
	// Tokens are the tokens of the API; none opens the console to everyone.
	Tokens []Token

	// Now returns the time of this machine, for the ends of sessions.
	Now core.Clock

	// Manual returns the chapters of the manual as JSON, {"chapters": [{"name", "about", "text"}]},
	// with texts in Markdown. Nil means that there is no manual. It is called once, at the first
	// request.
	Manual func() []byte

	// Sends says that this process takes events, so that the page can send them.
	Sends bool
}

// consolePiece returns the routes of the console.
func consolePiece(s *sessions, o ConsoleOptions) Piece {
	return func(r chi.Router, d *Door) {
		c := &consoleRoutes{d, s, nil, o.Sends}
		if o.Manual != nil {
			c.chapters = sync.OnceValue(func() console.File { return console.NewFile("application/json", o.Manual()) })
		}
		r.Get(consolePath, c.page)
		r.Get(consolePath+"/", c.redirect)
		r.Get(consolePath+"/assets/{version}/{file}", c.file)
		r.Get(consolePath+"/manual", d.polling(c.manual))
		r.Get(consolePath+"/session", d.polling(c.session))
		r.Post(consolePath+"/session", d.receiving(&d.budgets.operators, c.signIn))
		r.Delete(consolePath+"/session", d.polling(c.signOut))
	}
}

// consoleRoutes serve the page, its files and its sessions.
type consoleRoutes struct {
	*Door
	sessions *sessions
	chapters func() console.File // of the manual; nil if there is none
	sends    bool                // whether the page can send events
}

// redirect leads to the page, whose addresses are relative to where it is. The page has no slash at its
// end, since some routers of clouds do not match one.
func (c *consoleRoutes) redirect(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "../console")
	w.WriteHeader(http.StatusPermanentRedirect)
}

// page serves the page. It is not cached, so that a browser sees a new version at once.
func (c *consoleRoutes) page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", consolePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(console.Load().Page)
}

// file serves a script or a style. The files of another version are gone: their page is reloaded.
func (c *consoleRoutes) file(w http.ResponseWriter, r *http.Request) {
	all := console.Load()
	f, ok := all.Files[chi.URLParam(r, "file")]
	if !ok || chi.URLParam(r, "version") != all.Version {
		c.fail(w, r, errNoRoute)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Content-Security-Policy", consolePolicy)
	h.Set("Cache-Control", foreverCached)
	send(w, r, f)
}

// send writes a file, compressed for a client that can read it.
func send(w http.ResponseWriter, r *http.Request, f console.File) {
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(f.Gzipped())
		return
	}
	_, _ = w.Write(f.Text)
}

// manual serves the chapters of the manual to a browser that is signed in. A browser keeps them, and
// asks each time whether this version still has the same text.
func (c *consoleRoutes) manual(w http.ResponseWriter, r *http.Request) error {
	if _, ok := c.sessions.of(r); !ok {
		return errToken
	}
	if c.chapters == nil {
		return errNoManual
	}
	f := c.chapters()
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", f.Tag)
	if r.Header.Get("If-None-Match") == f.Tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	send(w, r, f)
	return nil
}

// errNoManual refuses to show the manual where it is not inside.
var errNoManual = core.Refuse(core.NotFound, `the manual is not inside of this gateway; "gateway help" prints it`)

// session answers with the name and role of the token with which the browser is signed in.
func (c *consoleRoutes) session(w http.ResponseWriter, r *http.Request) error {
	token, ok := c.sessions.of(r)
	if !ok {
		return errToken
	}
	writeJSON(w, http.StatusOK, c.sessionOf(token))
	return nil
}

// sessionOf returns the record of a session. Only an API without tokens has a session without one.
func (c *consoleRoutes) sessionOf(t Token) wire.Session {
	return wire.Session{Name: wire.Text(t.Name), Role: t.Role, Open: t.Text == "", Sends: c.sends && t.Role.Includes(core.RoleSend)}
}

// signIn exchanges a token, or a code that a command made with one, for a cookie.
func (c *consoleRoutes) signIn(w http.ResponseWriter, r *http.Request) error {
	if !isJSON(r) {
		return errNotJSON
	}
	body, err := c.optional(w, r, "token", "code")
	if err != nil {
		return err
	}
	text, _, err := body.text("token")
	if err != nil {
		return err
	}
	code, byCode, err := body.text("code")
	if err != nil {
		return err
	}
	token, ok := c.sessions.token(text)
	if byCode {
		token, ok = c.sessions.coded(code)
	}
	if !ok {
		return errToken
	}
	if !token.Role.Includes(core.RoleRead) {
		return core.Refuse(core.Forbidden, "token %s has the role %s; the console needs %s", quote(token.Name), token.Role, core.RoleRead)
	}
	http.SetCookie(w, c.sessions.cookie(token, secured(r)))
	writeJSON(w, http.StatusOK, c.sessionOf(token))
	return nil
}

// signOut deletes the cookie. The session itself ends with its time, or when the token changes.
func (c *consoleRoutes) signOut(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, MaxAge: -1, HttpOnly: true, Secure: secured(r), SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// secured reports whether the browser reached the gateway over TLS, also if a proxy ended it: the
// browser says so in the origin of the page.
func secured(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// errNotJSON refuses a change that a form of another page could send.
var errNotJSON = core.Refuse(core.Unsupported, "the console takes application/json only")

// isJSON reports whether the body of a request is JSON.
func isJSON(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// through returns a handler that serves requests to consolePath/api/... as requests to /api/..., and those
// to consolePath/events/... as requests to /events/..., with the token of their session. Their header
// field Authorization is dropped.
//
// It stands before the guards, so that they and the router see the path of the API. It costs other
// requests a comparison of the path.
func (s *sessions) through(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, consolePath)
		if !ok || !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/events/") {
			next.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), fromConsole{}, true))
		u := *r.URL
		u.Path, u.RawPath = path, strings.TrimPrefix(u.RawPath, consolePath)
		r.URL, r.Header = &u, r.Header.Clone()
		delete(r.Header, "Authorization")
		if token, ok := s.of(r); ok && token.Text != "" {
			r.Header["Authorization"] = []string{"Bearer " + token.Text}
		}
		next.ServeHTTP(w, r)
	})
}

// fromConsole is the key of the contexts of requests that came through the console.
type fromConsole struct{}

// formOfConsole reports whether a request that came through the console has a body that a form of a
// page can send, which is no JSON. Only the cookie authenticates such a request.
func formOfConsole(r *http.Request) bool {
	return r.ContentLength != 0 && !isJSON(r) && r.Context().Value(fromConsole{}) != nil
}
