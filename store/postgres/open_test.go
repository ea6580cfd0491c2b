package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
)

// secret is the password in every address below. No error may show it.
const secret = "hush/hush"

// guarded starts a server that requires a password over TCP and offers TLS, with a certificate
// that no authority has signed.
func guarded(t *testing.T) *servers.PostgresServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "gateway-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	rules := "local all postgres trust\nlocal all all trust\nhost nobody all 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(dir, "hba"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := servers.StartPostgres(servers.PostgresOptions{TCP: true, Settings: []string{"hba_file=" + filepath.Join(dir, "hba")}})
	servers.Check(t, err)
	t.Cleanup(func() { s.Stop() })
	exec(t, s.URL("postgres"), "CREATE USER guest PASSWORD '"+secret+"'", "CREATE DATABASE taken", "REVOKE CONNECT ON DATABASE taken FROM PUBLIC",
		"CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'", "CREATE DATABASE fresh")
	exec(t, s.URL("fresh"), "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	return s
}

// A wrong is a wrong address, with the beginning of the error that it must give.
type wrong struct {
	name, url string
	kind      core.Kind
	want      string
}

func sayWhatIsWrong(t *testing.T, cases []wrong) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Open(t.Context(), tc.url, pool)
			if err == nil {
				c.Close()
				t.Fatal("Open succeeded")
			}
			if !core.IsKind(err, tc.kind) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("Open = %v\nwant kind %d: %s", err, tc.kind, tc.want)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("Open = %v, which shows the password", err)
			}
		})
	}
}

// as returns an address with another user, database or parameters.
func as(tb testing.TB, address string, change func(u *url.URL, params url.Values)) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	params := u.Query()
	change(u, params)
	u.RawQuery = params.Encode()
	return u.String()
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	tcp := s.TCP("postgres")
	host, closed := hostOf(t, tcp), ports.Refusing(t)
	guest := func(database, password string, params ...string) string {
		return as(t, tcp, func(u *url.URL, q url.Values) {
			u.User, u.Path = url.UserPassword("guest", password), "/"+database
			for i := 0; i < len(params); i += 2 {
				q.Set(params[i], params[i+1])
			}
		})
	}
	sayWhatIsWrong(t, []wrong{
		{"nobody listens", strings.Replace(guest("fresh", secret), host, closed, 1), core.Unavailable,
			"PostgreSQL at " + closed + " cannot be reached (connection refused): check the host and port in database.url, and that the server runs"},
		{"no such host", "postgres://guest:hush%2Fhush@db.invalid/fresh", core.Unavailable,
			"PostgreSQL at db.invalid:5432 cannot be reached ("},
		{"no such socket", "host=/nowhere user=guest password=hush/hush", core.Unavailable,
			"PostgreSQL at /nowhere cannot be reached (no such file or directory): check the host and port in database.url, and that the server runs"},
		{"wrong password", guest("fresh", "hush/other"), core.Invalid,
			`PostgreSQL refuses user "guest" (password authentication failed for user "guest"): check the user and the password in database.url`},
		{"wrong user", strings.Replace(guest("fresh", secret), "guest", "ghost", 1), core.Invalid,
			`PostgreSQL refuses user "ghost" (password authentication failed for user "ghost"): check the user and the password in database.url`},
		{"not let in", guest("nobody", secret), core.Invalid, `PostgreSQL refuses user "guest" (pg_hba.conf rejects connection for host`},
		{"unknown database", guest("missing", secret), core.Invalid,
			`PostgreSQL has no database "missing": create it, or correct its name in database.url`},
		{"no right to connect", guest("taken", secret), core.Invalid,
			`user "guest" may not connect to the PostgreSQL database "taken": GRANT CONNECT on it, or correct database.url`},
		{"encoding", s.URL("latin"), core.Invalid, `database "latin" has the encoding LATIN1: create one with ENCODING 'UTF8'`},
		{"no TLS", guest("fresh", secret, "sslmode", "require"), core.Invalid,
			"TLS with PostgreSQL at " + host + " fails (server refused TLS connection): check sslmode and sslrootcert in database.url"},
		{"no such certificate", guest("fresh", secret, "sslmode", "verify-full", "sslrootcert", "/nowhere/ca.pem"), core.Invalid,
			"database.url is not understood (no such file or directory)"},
		{"no URL", "postgres//guest:hush/hush@db", core.Invalid, "database.url is not understood ("},
		{"password not encoded", "postgres://guest:hush/hush@db:5432/fresh", core.Invalid, "database.url is not understood (invalid port): write it like postgres://"},
		{"unknown sslmode", guest("fresh", secret, "sslmode", "some"), core.Invalid, "database.url is not understood (sslmode is invalid)"},
		{"unknown mode", guest("fresh", secret, "default_query_exec_mode", "some"), core.Invalid, "database.url is not understood (invalid default_query_exec_mode)"},
		{"pool", guest("fresh", secret, "pool_max_conns", "none"), core.Invalid, "database.url is not understood (cannot parse pool_max_conns)"},
	})
	theirs, _ := certificate(t)
	ours, key := certificate(t)
	startTLS(t, s, ours, key)
	sayWhatIsWrong(t, []wrong{
		{"a certificate by somebody else", guest("fresh", secret, "sslmode", "verify-full", "sslrootcert", theirs), core.Invalid,
			"TLS with PostgreSQL at " + host + " fails (x509: certificate signed by unknown authority"},
		{"password over TLS", guest("fresh", "hush/other", "sslmode", "verify-full", "sslrootcert", ours), core.Invalid,
			`PostgreSQL refuses user "guest" (`},
	})
	t.Run("right", func(t *testing.T) {
		c, err := Open(t.Context(), guest("fresh", secret), pool)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = store.New(c, store.Postgres, core.SystemClock).Migrate(t.Context())
		want := "the user of database.url lacks a right in PostgreSQL (permission denied for schema public): GRANT USAGE, CREATE ON SCHEMA public"
		if !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Migrate without the right to = %v, want %q", err, want)
		}
	})
}

func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	config, err := parse(servers.Postgres(t), pool)
	if err != nil {
		t.Fatal(err)
	}
	_, err = inspect(t.Context(), config.ConnConfig, 99_00_00)
	if !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), ": the gateway needs 14 or later") {
		t.Errorf("look = %v, want a refusal that names the version needed", err)
	}
	if _, err := inspect(t.Context(), config.ConnConfig, minVersion); err != nil {
		t.Errorf("look = %v", err)
	}
}

// TestSettings checks every setting of a connection that the package comment names.
func TestSettings(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	database := strings.Split(strings.Split(address, "?")[0], "/")
	exec(t, address, "ALTER DATABASE "+database[len(database)-1]+" SET synchronous_commit = off")
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		c := opened(t, address+"&default_query_exec_mode="+mode)
		for setting, want := range map[string]string{"synchronous_commit": "on", "enable_seqscan": "off", "jit": "off", "application_name": "gateway"} {
			got, err := c.Batch(t.Context(), store.Stmt{Name: "show", SQL: "SELECT current_setting('" + setting + "')", Reads: true})
			if err != nil || got[0].Rows[0][0] != want {
				t.Errorf("%s: %s = %v, %v, want %s", mode, setting, got, err, want)
			}
		}
		if mode == "cache_statement" {
			continue
		}
		// No setting may stay on a connection that a pooler gives to another client next.
		err := c.pool.AcquireFunc(t.Context(), func(pc *pgxpool.Conn) error {
			var seqscan string
			err := pc.QueryRow(t.Context(), "SHOW enable_seqscan", pgx.QueryExecModeSimpleProtocol).Scan(&seqscan)
			if seqscan != "on" {
				t.Errorf("%s: enable_seqscan = %s after a transaction, want on", mode, seqscan)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPoolSize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		url                string
		most, size, commit int
	}{
		{"postgres://db/x", 10, 10, 2},
		{"postgres://db/x", 1, 1, 1},
		{"postgres://db/x", 3, 3, 1},
		{"postgres://db/x?pool_max_conns=7", 10, 7, 2},
		{"host=db pool_max_conns=7", 10, 7, 2},
	} {
		config, err := parse(tc.url, tc.most)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(config.MaxConns); got != tc.size || committers(got) != tc.commit {
			t.Errorf("%s with %d: %d connections, %d committers, want %d and %d", tc.url, tc.most, got, committers(got), tc.size, tc.commit)
		}
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// certificate makes a certificate for 127.0.0.1 with its key, and returns their file names.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", secret)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startTLS has the server write the files itself, because their owner must be the server's user.
func startTLS(t *testing.T, s *servers.PostgresServer, cert, key string) {
	t.Helper()
	write := func(name, from string) string {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		return "COPY (SELECT '" + base64.StdEncoding.EncodeToString(b) + "') TO PROGRAM 'umask 077; base64 -d >" + name + "'"
	}
	exec(t, s.URL("postgres"), write("server.crt", cert), write("server.key", key), "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
	wait.For(t, 30*time.Second, "the server speaks TLS", func() bool {
		c, err := pgx.Connect(t.Context(), s.TCP("postgres")+"&sslmode=require")
		if err == nil {
			c.Close(t.Context())
		}
		return err == nil || !strings.Contains(err.Error(), "refused TLS")
	})
}
