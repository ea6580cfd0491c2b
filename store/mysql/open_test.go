package mysql

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

const secret = "p@ss:w/rd?%"

// TestOpenSaysWhatIsWrong uses a server that also listens on TCP.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	server, err := servers.StartMySQL(servers.MySQLOptions{TCP: true})
	servers.Check(t, err)
	t.Cleanup(func() { server.Stop() })
	root, err := server.NewDatabase("gateway")
	if err != nil {
		t.Fatal(err)
	}
	admin(t, root, "CREATE USER 'gw'@'%' IDENTIFIED BY '"+secret+"'", "GRANT SELECT ON gateway.* TO 'gw'@'%'",
		"CREATE USER 'nobody'@'%' IDENTIFIED BY '"+secret+"'")
	host := strings.TrimSuffix(strings.TrimPrefix(server.TCP(""), "mysql://root@"), "/")
	at := func(user, password, rest string) string {
		return "mysql://" + url.UserPassword(user, password).String() + "@" + host + "/" + rest
	}
	for _, c := range []struct {
		name, url string
		kind      core.Kind
		want      string
	}{
		{"unreachable", "mysql://gw:" + url.QueryEscape(secret) + "@" + ports.Refusing(t) + "/gateway", core.Unavailable, "cannot be reached (connection refused): check the host and port in database.url, and that the server runs"},
		{"no socket", "mysql://gw@unix(/nowhere/s)/gateway", core.Unavailable, "the database at /nowhere/s cannot be reached"},
		{"network", "gw:" + secret + "@nowhere(127.0.0.1)/gateway", core.Invalid, `database.url: "nowhere" is no network: it is tcp(host:port) or unix(/path)`},
		{"password", at("gw", "wrong"+secret, "gateway"), core.Invalid, `database.url: the server at ` + host + ` refuses user "gw": wrong user or password`},
		{"user", at("who", secret, "gateway"), core.Invalid, `refuses user "who": wrong user or password`},
		{"database", server.URL("missing"), core.Invalid, `has no database "missing": create it, or correct the name`},
		{"database of others", at("nobody", secret, "gateway"), core.Invalid, `user "nobody" may not use the database "gateway", or there is none`},
		{"parameter", at("gw", secret, "gateway?nonsense=1"), core.Invalid, "database.url: a parameter after the question mark is neither the driver's nor a variable of the server"},
		{"no TLS", at("gw", secret, "gateway?tls=true"), core.Invalid, "offers no TLS: set it up there, or leave tls out"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.url, c.kind, c.want) })
	}
	t.Run("right", func(t *testing.T) {
		if got := opened(t, at("gw", secret, "gateway")).read(t, "SELECT USER()"); !strings.HasPrefix(fmt.Sprint(got), "gw@") {
			t.Errorf("user = %v", got)
		}
		opened(t, "gw:"+secret+"@tcp("+host+")/gateway")
	})
	t.Run("rights", func(t *testing.T) {
		s := store.New(opened(t, at("gw", secret, "gateway")), store.MySQL, core.SystemClock)
		err := s.Migrate(context.Background())
		if want := "the database user may not create tables: grant it SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX and ALTER"; !core.IsKind(err, core.Invalid) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("Migrate = %v, want %q", err, want)
		}
	})
}

// refused checks that Open refuses a URL with the given error, and that the error does not show
// the password.
func refused(t *testing.T, url string, kind core.Kind, want string) {
	t.Helper()
	c, err := Open(context.Background(), url, pooled)
	if err == nil {
		c.Close()
	}
	if !core.IsKind(err, kind) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("Open = %v, want %q", err, want)
	}
	if strings.Contains(fmt.Sprint(err), secret) || strings.Contains(fmt.Sprint(err), "s3cret") {
		t.Errorf("Open tells the password: %v", err)
	}
}

func TestMalformedURLs(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "database.url names no database",
		"mysql://":                               "database.url is malformed",
		"postgres://u:s3cret@h/db":               "database.url is malformed",
		"mysql://u:s3cret%zz@h/db":               "database.url is malformed",
		"mysql://u:s3cret@h/a/b":                 "database.url is malformed",
		"mysql://u:s3cret@h:port/db":             "database.url is malformed",
		"u:s3cret@tcp(h:3306":                    "database.url is malformed",
		"mysql://u:s3cret%zz@unix(/s)/db":        "database.url is malformed",
		"mysql://u:s3cret@h:3306/db?tls=unheard": "unknown config name: unheard",
		"mysql://u:s3cret@h:3306":                "database.url names no database",
		"mysql://u:s3cret@h:3306/?tls=true":      "database.url names no database",
		"u:s3cret@tcp(h:3306)/":                  "database.url names no database",
	} {
		refused(t, text, core.Invalid, want)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"mysql://u:p%40w@h/db":                  "u:p@w@tcp(h:3306)/db",
		"mysql://u:p%2Fw@h:3307/db?tls=true":    "u:p/w@tcp(h:3307)/db",
		"mariadb://u@h/db":                      "u:@tcp(h:3306)/db",
		"mysql://u@[::1]:3306/d%20b":            "u:@tcp([::1]:3306)/d b",
		"mysql://u@[::1]/db":                    "u:@tcp([::1]:3306)/db",
		"mysql://u:p%40w@unix(/run/my.sock)/db": "u:p@w@unix(/run/my.sock)/db",
		"u:p%40w@tcp(h)/db":                     "u:p%40w@tcp(h:3306)/db",
	} {
		a, err := parseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c := a.config
		if got := fmt.Sprintf("%s:%s@%s(%s)/%s", c.User, c.Passwd, c.Net, c.Addr, c.DBName); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

// TestTLSNamesTheHost: the name in the certificate is compared with the host of the URL.
func TestTLSNamesTheHost(t *testing.T) {
	a, err := parseAddress("mysql://u@db.example:3306/db?tls=true")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPool(a, 1)
	if err != nil || p == nil {
		t.Fatal(err)
	}
	if a.config.TLSConfig != "true" || a.config.TLS != nil {
		t.Errorf("TLS = %q %v, want it made for the address", a.config.TLSConfig, a.config.TLS)
	}
}

// TestRarerReasons explains errors that the server of these tests cannot be made to raise.
func TestRarerReasons(t *testing.T) {
	a, err := parseAddress("mysql://u:s3cret@h/db?tls=true")
	if err != nil {
		t.Fatal(err)
	}
	for want, cause := range map[string]error{
		"the server at h:3306 accepts encrypted connections only: add ?tls=true":                            &mysql.MySQLError{Number: 3159},
		"the server at h:3306 accepts no connections from this host":                                        &mysql.MySQLError{Number: 1130},
		"no TLS with the server at h:3306 (x509: certificate signed by unknown authority): its certificate": x509.UnknownAuthorityError{},
		`user "u" has a way of authentication that is not supported`:                                        mysql.ErrUnknownPlugin,
	} {
		if err := a.explain(store.Unavailable(cause)); !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v is explained as %v, want %q", cause, err, want)
		}
	}
	if err := a.explain(store.Unavailable(&mysql.MySQLError{Number: 1040})); !core.IsKind(err, core.Unavailable) {
		t.Errorf("too many connections: %v, want unavailable", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"10.11.19-MariaDB-0+deb12u1": "",
		"10.6.0-MariaDB":             "",
		"11.8.2-MariaDB-ubu2404-log": "",
		"8.0.4":                      "",
		"8.0.36-28.1":                "",
		"9.1.0":                      "",
		"10.5.29-MariaDB":            "the server is MariaDB 10.5.29, too old: use MySQL 8.0.4 or MariaDB 10.6.0, or later",
		"5.7.44-log":                 "the server is MySQL 5.7.44, too old",
		"8.0.3-rc":                   "the server is MySQL 8.0.3, too old",
		"something else":             `the server says its version is "something else"`,
	} {
		err := checkVersion(text)
		if want == "" && err != nil || want != "" && (!core.IsKind(err, core.Invalid) || !strings.Contains(fmt.Sprint(err), want)) {
			t.Errorf("version %q: %v, want %q", text, err, want)
		}
	}
}
