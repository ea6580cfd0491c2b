package config

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/eventgateway/gateway/core/endpoint"
)

// remotely loads a text as a remote configuration.
func remotely(t *testing.T, allow, text string) *Config {
	t.Helper()
	c, err := Load(Options{
		FS: fstest.MapFS{"gateway.yaml": {Data: []byte(text)}}, Path: "gateway.yaml", Remote: true,
		Lookup: func(name string) (string, bool) { return allow, name == allowVariable },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A remote configuration may not let in one address more than the configuration before it. The
// notation of its networks makes no difference.
func TestRemoteChangesOfNetworks(t *testing.T) {
	proxies := func(list string) string {
		return "server: {trusted_proxies: [" + list + "]}\nsources: {a: {type: event}}"
	}
	clients := func(list string) string {
		if list == "" {
			return "sources: {a: {type: event}}"
		}
		return "sources: {a: {type: event, allowed_ips: [" + list + "]}}"
	}
	for _, c := range []struct {
		of           func(string) string
		was, is      string
		allow, field string // field is the refused field, or empty
	}{
		{clients, "10.0.0.0/8", "10.0.0.0/9, 10.128.0.0/9", "", ""},
		{clients, "10.0.0.0/9, 10.128.0.0/9", "10.0.0.0/8", "", ""},
		{clients, "10.0.0.0/8", "10.1.2.3", "", ""},
		{clients, "10.0.0.0/8", "11.1.2.3", "", "sources.a.allowed_ips"},
		{clients, "10.0.0.0/8", "10.0.0.0/7", "", "sources.a.allowed_ips"},
		{clients, "10.0.0.0/8", "10.0.0.0/8, '::1'", "", "sources.a.allowed_ips"},
		{clients, "10.0.0.0/8", "", "", "sources.a.allowed_ips"},
		{clients, "0.0.0.0/0", "", "", "sources.a.allowed_ips"},
		{clients, "0.0.0.0/0, '::/0'", "", "", ""},
		{clients, "", "10.0.0.0/8", "", ""},
		{clients, "", "0.0.0.0/0, '::/0'", "", ""},
		{clients, "10.0.0.0/8", "", "sources.*.allowed_ips", ""},
		{clients, "10.0.0.0/8", "", "sources.a.allowed_ips", ""},
		{clients, "10.0.0.0/8", "", "sources.b.allowed_ips,server.trusted_proxies", "sources.a.allowed_ips"},
		{proxies, "10.0.0.0/8", "10.128.0.0/9, 10.0.0.0/9", "", ""},
		{proxies, "10.0.0.0/8", "10.0.0.1", "", ""},
		{proxies, "10.0.0.1", "10.0.0.0/8", "", "server.trusted_proxies"},
		{proxies, "10.0.0.1", "", "", "server.trusted_proxies"}, // the one proxy may have any address
		{proxies, "", "10.0.0.1", "", "server.trusted_proxies"}, // its entries would be passed over
		{proxies, "", "", "", ""},
		{proxies, "10.0.0.1", "0.0.0.0/0", "server.trusted_proxies", ""},
	} {
		got := remotely(t, c.allow, c.of(c.was)).Forbids(remotely(t, c.allow, c.of(c.is)))
		if c.field == "" && len(got) > 0 || c.field != "" && (len(got) != 1 || got[0].Path != c.field || !strings.Contains(got[0].Message, allowVariable)) {
			t.Errorf("from [%s] to [%s] with %s=%s: %v, want %q refused", c.was, c.is, allowVariable, c.allow, got, c.field)
		}
	}
}

// A file of the machine's own is only kept from opening a source to every address.
func TestLocalChangesOfNetworks(t *testing.T) {
	was := loaded(t, "sources: {a: {type: event, allowed_ips: [10.0.0.0/8]}}\nserver: {trusted_proxies: [10.0.0.1]}")
	is := loaded(t, "sources: {a: {type: event, allowed_ips: [192.0.2.0/24]}}\nserver: {trusted_proxies: [0.0.0.0/0], echo: true}")
	if got := was.Forbids(is); len(got) > 0 {
		t.Errorf("Forbids = %v, want nothing", got)
	}
}

// A source that was taken away, or made a schedule, and comes back must be as closed as
// before.
func TestSourcesThatComeBack(t *testing.T) {
	guarded := remotely(t, "", "sources: {a: {type: event, allowed_ips: [10.0.0.0/8]}, b: {type: event}}")
	for what, between := range map[string]string{
		"gone":       "sources: {b: {type: event}}",
		"a schedule": "sources: {a: {type: cron, schedule: '@daily'}, b: {type: event}}",
	} {
		if what == "a schedule" {
			between = strings.Replace(between, "@daily", "0 9 * * *", 1)
		}
		c := guarded
		for _, text := range []string{between, "sources: {b: {type: event, allowed_ips: [10.0.0.0/8]}}", between} {
			next := remotely(t, "", text)
			if got := c.Forbids(next); len(got) > 0 && text == between && !strings.Contains(got.Error(), "sources.b") {
				t.Fatalf("%s: Forbids = %v", what, got)
			}
			next.Follow(c)
			c = next
		}
		got := c.Forbids(remotely(t, "", "sources: {a: {type: event}, b: {type: event, allowed_ips: [10.0.0.0/8]}}"))
		if len(got) != 1 || got[0].Path != "sources.a.allowed_ips" {
			t.Errorf("%s: Forbids = %v, want sources.a.allowed_ips refused", what, got)
		}
		if got := c.Forbids(remotely(t, "", "sources: {a: {type: event, allowed_ips: [10.1.0.0/16]}, b: {type: event, allowed_ips: [10.0.0.0/8]}}")); len(got) > 0 {
			t.Errorf("%s: Forbids = %v, want the source to come back as it was", what, got)
		}
	}
}

// Other faults come first: Forbidden is the error of a configuration without any other fault.
func TestForbiddenIsTheOnlyFault(t *testing.T) {
	load := func(text string) error {
		_, err := Load(Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(text)}}, Path: "gateway.yaml", Remote: true})
		return err
	}
	var problems Problems
	if err := load("server: {echo: true}"); !errors.As(err, new(Forbidden)) || !errors.As(err, &problems) || len(problems) != 1 {
		t.Errorf("Load = %v, want a Forbidden with its problem", err)
	}
	problems = nil
	if err := load("server: {echo: true, prot: 1}"); errors.As(err, new(Forbidden)) || !errors.As(err, &problems) || len(problems) != 2 {
		t.Errorf("Load = %v, want both problems, and not to be Forbidden", err)
	}
}

// GATEWAY_CONFIG_ALLOW can list every field for secrets, and a field that is added later is
// judged like the others.
func TestSecretFields(t *testing.T) {
	want := "database.url database.api_token api.auth_token api.metrics_auth_token api.tokens.*.token delivery.signing_secret sources.*.secret " +
		"handlers.*.signing_secret handlers.*.headers queues.*.api_key alerts.*.url workflows.*.headers"
	have := strings.Join(secretFields(), " ")
	for field := range strings.FieldsSeq(want) {
		if !strings.Contains(" "+have+" ", " "+field+" ") {
			t.Errorf("secretFields = %s, want %s in it", have, field)
		}
	}
	for path, want := range map[string]string{
		"server.echo": "server.echo", "alerts.url": "alerts.*.url", "alerts[12].url": "alerts.*.url", "api.tokens[3].token": "api.tokens.*.token", "sources.a.secret[1]": "sources.*.secret",
		"handlers.a.headers.X-Key": "handlers.*.headers", "workflows.w.steps[1].branches[0].steps[2].iterator.headers.X": "workflows.*.headers",
		"delivery.signing_secret[0]": "delivery.signing_secret", "queues.*.api_key": "queues.*.api_key",
	} {
		if got := everyEntry(path); got != want {
			t.Errorf("everyEntry(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestCredentialHeaders(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "authorization": true, "Proxy-Authorization": true, "X-Api-Key": true, "Api_Key": true, "X-Auth": true, "Cookie": true,
		"X-Gitlab-Token": true, "X-AccessToken": true, "Apikey": true, "X-Shared-Secret": true, "X-Password": true, "X-Session": true,
		"Accept": false, "X-Tenant": false, "Idempotency-Key": false, "X-Author": false, "X-Token-Kind": false, "X-Keyboard": false, "X-Monkey": false,
	} {
		if got := endpoint.IsCredential(name); got != want {
			t.Errorf("IsCredential(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestDatabasePasswords(t *testing.T) {
	for url, want := range map[string]bool{
		"postgres://u:pw@db/x": true, "postgres://u:\x00@db/x": false, "postgres://u@db/x": false, "\x00": false, "postgres://u@db/x?password=pw": true,
		"postgres://u@db/x?sslmode=disable&password=\x00": false, "host=db user=u password=pw": true, "host=db user=u password='p w'": true,
		"host=db user=u password=\x00": false, "u:pw@tcp(db:3306)/x": true, "u:\x00@tcp(db:3306)/x": false, "mysql://u:pw@db/x?tls=true": true, "postgres://u:@db/x": false,
		"postgres://db:5432/x": false, "postgres://db:5432/x?application_name=a@b": false, "mysql://u:p@ss:w@rd@db/x": true,
	} {
		if got := hasPassword(url); got != want {
			t.Errorf("hasPassword(%q) = %v, want %v", url, got, want)
		}
	}
}
