//go:build linux

package e2e

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// guard gives a store a password or token that is a canary, or makes its existing one a
// canary.
func (h *haul) guard(t testing.TB, st *store) {
	t.Helper()
	if st.name == "D1" || st.name == "D1 behind its proxy" {
		h.guardHosted(t, st)
		return
	}
	for i, v := range st.env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case name == "DATABASE_URL" && st.name == "PostgreSQL":
			st.env[i] = name + "=" + h.withPassword(t, value)
		case name == "DATABASE_URL" && st.name == "MySQL":
			st.env[i] = name + "=" + h.asUser(t, st, value)
		}
	}
}

// guardHosted puts a proxy before D1. The proxy accepts a canary as its token.
func (h *haul) guardHosted(t testing.TB, st *store) {
	t.Helper()
	variables := map[string]*string{}
	for i, v := range st.env {
		name, _, _ := strings.Cut(v, "=")
		variables[name] = &st.env[i]
	}
	at := variables["D1_ENDPOINT"]
	if at == nil {
		at = variables["GATEWAY_HOSTED_SQL_API"]
	}
	name, address, _ := strings.Cut(*at, "=")
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(*variables["D1_TOKEN"], "=")
	door := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if r.In.Header.Get("Authorization") == "Bearer "+h.secret("database.api_token") {
			r.Out.Header.Set("Authorization", "Bearer "+token)
		}
	}})
	t.Cleanup(door.Close)
	*at = name + "=" + door.URL
	*variables["D1_TOKEN"] = "D1_TOKEN=" + h.secret("database.api_token")
}

// withPassword adds a password to an address whose server accepts any. It keeps an existing
// password.
func (h *haul) withPassword(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the address of the PostgreSQL server is not a URL")
	}
	if password, ok := u.User.Password(); ok {
		h.learn("database.url", password)
		return address
	}
	u.User = url.UserPassword(u.User.Username(), h.secret("database.url"))
	return u.String()
}

// asUser returns an address for a new user with a password, on the server's socket.
func (h *haul) asUser(t testing.TB, st *store, address string) string {
	t.Helper()
	rest, ok := strings.CutPrefix(address, "mysql://root@unix(")
	if !ok {
		return address // a server that the environment names
	}
	user, database := strings.ToLower(h.secret("user")[:clue]), address[strings.LastIndex(address, "/")+1:]
	l := st.open(t)
	for _, statement := range []string{
		"CREATE USER '" + user + "'@'localhost' IDENTIFIED BY '" + h.secret("database.url") + "'",
		"GRANT ALL ON `" + database + "`.* TO '" + user + "'@'localhost'",
	} {
		if _, err := l.db.Exec(statement); err != nil {
			t.Fatalf("make a user: %v", err)
		}
	}
	delete(h.canaries, "user") // the user's name is no secret
	return "mysql://" + user + ":" + h.secret("database.url") + "@unix(" + rest
}

// A dialect has the queries for all contents of a database.
type dialect struct{ columns, text string }

const informed = `SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = `

var dialects = map[string]dialect{
	"PostgreSQL": {informed + `current_schema()`, "TEXT"},
	"MySQL":      {informed + `DATABASE()`, "CHAR"},
	"": {`SELECT t.name || '.' || c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE '\_cf%' ESCAPE '\'`, "TEXT"},
}

// values returns the values of each column of a database, by table.column.
func (l *ledger) values(store string) map[string]string {
	l.t.Helper()
	d, ok := dialects[store]
	if !ok {
		d = dialects[""]
	}
	all := map[string]string{}
	for _, column := range l.column(d.columns) {
		table, name, _ := strings.Cut(column, ".")
		all[column] = strings.Join(l.column("SELECT COALESCE(CAST("+name+" AS "+d.text+"), '') FROM "+table), "\n")
	}
	if len(all) < 50 || all["events.payload"] == "" {
		l.t.Fatalf("%d columns, with payloads of %d bytes, want all there are", len(all), len(all["events.payload"]))
	}
	return all
}
