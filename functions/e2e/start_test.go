//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestRefusedStarts: a function exits if its configuration is unusable. Its log has the reason
// and no secret.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	const (
		sources = "sources: {app: {type: event}}\n"
		away    = `database: {driver: postgres, url: "postgres://u:p4ssword@127.0.0.1:1/db"}`
	)
	for _, tt := range []struct {
		name, config string
		env          []string
		want         []string
		only         string // the functions that refuse it; "" for all
	}{
		{"sqlite", sources, nil, []string{"sqlite", "hosted_sql or postgres"}, ""},
		{"mysql", sources + `database: {driver: mysql, url: "mysql://u:p4ssword@h/db"}`, nil, []string{"mysql", "hosted_sql or postgres"}, ""},
		{"mistake", sources + away + "\nhandlers: {h: {source: nobody, url: \"https://example.com\"}}", nil, []string{"nobody"}, ""},
		{"no file", "", nil, []string{"gateway.yaml"}, ""},
		{"variable", sources + `database: {driver: postgres, url: "${NOWHERE}"}`, nil, []string{"NOWHERE"}, ""},
		{"nudge", sources + away, []string{"GATEWAY_NUDGE=no name!"}, []string{"GATEWAY_NUDGE", "no name!"}, ""},
	} {
		for name := range strings.FieldsSeq(cmp.Or(tt.only, "intake pull worker cron")) {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if tt.config != "" {
					if err := os.WriteFile(filepath.Join(dir, "gateway.yaml"), []byte(tt.config), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				f := lambda.New(t).Add(lambda.Options{Name: name, Bootstrap: program(name), Root: dir, Env: tt.env})
				if r := f.Invoke([]byte(`{}`)); r.Error != lambda.Exited {
					t.Errorf("result %s %s, want %s", r.Error, r.Payload, lambda.Exited)
				}
				for _, want := range tt.want {
					if !strings.Contains(f.Log(), want) {
						t.Errorf("log %s, want %q in it", f.Log(), want)
					}
				}
				if strings.Contains(f.Log(), "p4ssword") {
					t.Errorf("log %s, want no password", f.Log())
				}
			})
		}
	}
}

// TestOldSchema: a function does not change the schema of an older version.
func TestOldSchema(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, _ := newStory(t, db)
		newest := db.count(`SELECT MAX(number) FROM schema_steps`)
		db.exec(fmt.Sprintf(`DELETE FROM schema_steps WHERE number = %d`, newest))
		d.must(500, "POST", "/events/order.created", `{}`)
		for _, f := range d.functions() {
			if r := f.Invoke([]byte(`{}`)); r.Error != lambda.Exited {
				t.Errorf("%s: %s %s, want %s", f.Name, r.Error, r.Payload, lambda.Exited)
			}
			if !strings.Contains(f.Log(), "gateway migrate up") {
				t.Errorf("%s says %s, want what to do", f.Name, f.Log())
			}
		}
		if got := db.count(`SELECT MAX(number) FROM schema_steps`); got != newest-1 {
			t.Errorf("schema is at step %d, want %d: functions do not change it", got, newest-1)
		}
		db.exec(fmt.Sprintf(`INSERT INTO schema_steps (number, applied_at) VALUES (%d, 0), (%d, 0)`, newest, newest+1))
		d.send("/events/order.created", `{}`) // a newer schema is fine
	})
}

// TestDatabaseAway: a function that starts while the database cannot be reached answers 503.
// It serves as soon as the database is back, without a restart.
func TestDatabaseAway(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		db.wire.Cut()
		began := time.Now()
		a := d.must(503, "POST", "/events/order.created", `{}`)
		t.Logf("refused %v after a cold start", time.Since(began).Round(time.Millisecond))
		if a.header.Get("Retry-After") == "" {
			t.Errorf("503 without Retry-After: %v", a.header)
		}
		d.must(503, "GET", "/api/queues/inbox/messages?wait=0s", "")
		began = time.Now()
		d.must(503, "GET", "/health", "")
		t.Logf("unhealthy after %v", time.Since(began).Round(time.Millisecond))
		// The invocation must fail, so that the error metric of the function shows the outage.
		if r := d.worker.Invoke([]byte(`{}`)); r.Error == "" || r.Error == lambda.Exited || r.Error == lambda.TimedOut {
			t.Errorf("the worker ended with %q, want an error of its own", r.Error)
		}
		db.wire.Mend()
		began = time.Now()
		wait.For(t, 20*time.Second, "events are accepted", func() bool {
			a, err := ask("POST", d.api.URL+"/events/order.created", `{}`)
			return err == nil && a.status == 202
		})
		t.Logf("accepted again after %v", time.Since(began).Round(time.Millisecond))
		wait.For(t, 20*time.Second, "the schedule finds the worker well", func() bool { return d.worker.Invoke([]byte(`{}`)).Error == "" })
		r.Await(t, 20*time.Second, "/orders", 1)
		wait.For(t, 20*time.Second, "the API answers", func() bool {
			a, err := ask("GET", d.api.URL+"/api/queues/inbox/messages?wait=0s", "")
			return err == nil && a.status == 200
		})
		if n := len(d.intake.Copies()); n != 1 {
			t.Errorf("copies of intake = %d, want the first one still", n)
		}
		for _, f := range d.functions() {
			for _, r := range f.Results() {
				if r.Error == lambda.Exited {
					t.Errorf("%s ended: %s", f.Name, f.Log())
				}
			}
		}
	})
}

// TestSecrets: the configuration may refer to values in Parameter Store and Secrets Manager. A
// function fetches them while its environment is made, and logs none.
func TestSecrets(t *testing.T) {
	t.Parallel()
	db := onPostgres(t)
	vault := lambda.NewSecrets(t)
	vault.Unready = 100 * time.Millisecond
	vault.Parameters["/gateway/database"] = strings.TrimPrefix(db.env[0], "DATABASE_URL=")
	const readToken = "a-token-of-a-dashboard-0123456789"
	vault.Secrets["gateway"] = `{"token":"` + apiToken + `","read":"` + readToken + `"}`
	r := receiver.New(t)
	d := deploy{
		config:   storyConfig + "api: {auth_token: \"${TOKEN}\", tokens: [{name: dashboard, token: \"${READ_TOKEN}\", role: read}]}\n",
		receiver: r, env: []string{"TOKEN=" + apiToken, "READ_TOKEN=" + readToken},
		change: func(o *lambda.Options) {
			o.Secrets = vault
			o.Env = append(append([]string{}, o.Env...), "DATABASE_URL=ssm:/gateway/database", "TOKEN=secretsmanager:gateway#token", "READ_TOKEN=secretsmanager:gateway#read")
		},
	}.new(t, db)
	authorized := []string{"Authorization", "Bearer " + apiToken}
	d.send("/events/order.created", `{}`, authorized...)
	r.Await(t, 20*time.Second, "/orders", 1)
	d.must(401, "GET", "/api/queues", "")
	d.must(200, "GET", "/api/queues", "", authorized...)
	// A token with a role reaches the functions of both kinds of routes.
	reader := []string{"Authorization", "Bearer " + readToken}
	d.must(200, "GET", "/api/queues", "", reader...)
	for _, path := range []string{"/events/order.created", "/api/jobs/retry", "/api/queues/inbox/drain"} {
		if a := d.must(403, "POST", path, `{}`, reader...); !strings.Contains(a.body, `has the role read; this needs`) {
			t.Errorf("POST %s with the role read: %s", path, a.body)
		}
	}
	d.awaitIdle(20 * time.Second)
	for _, f := range d.functions() {
		if said := f.Log(); strings.Contains(said, apiToken) || strings.Contains(said, readToken) || strings.Contains(said, vault.Parameters["/gateway/database"]) {
			t.Errorf("%s tells a secret: %s", f.Name, said)
		}
	}
	if len(vault.Asked()) == 0 {
		t.Error("the function did not ask the extension")
	}
}

// TestAsShipped: the functions work with the configuration that comes with template.yaml and
// with its references to secrets. RDS Proxy needs statements that are not prepared.
func TestAsShipped(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		tokens := map[string]string{}
		for _, name := range []string{"GATEWAY_API_TOKEN", "GATEWAY_METRICS_TOKEN", "GATEWAY_SIGNING_SECRET", "GATEWAY_QUEUE_KEY"} {
			tokens[name] = "0123456789abcdef0123456789abcdef-" + name
		}
		values, overlay := maps.Clone(tokens), "hosted_sql"
		for _, v := range db.env {
			name, value, _ := strings.Cut(v, "=")
			if values[name] = value; name == "DATABASE_URL" {
				overlay, values[name] = "postgres", value+"&default_query_exec_mode=exec"
			}
		}
		vault := lambda.NewSecrets(t)
		env := []string{"GATEWAY_ENV=" + overlay, "GATEWAY_PUBLIC_URL=https://gateway.example.com"}
		for name, value := range values {
			env = append(env, name+"="+value)
			vault.Parameters["/gateway/"+name] = value
		}
		db.env = env // for `gateway migrate up`, which an operator runs
		d := deploy{folder: "../../infra/sam/config", change: func(o *lambda.Options) {
			o.Secrets = vault
			o.Env = []string{env[0], env[1], "D1_ENDPOINT=" + values["D1_ENDPOINT"]}
			for name := range values {
				if name != "D1_ENDPOINT" {
					o.Env = append(o.Env, name+"=ssm:/gateway/"+name)
				}
			}
		}}.new(t, db)
		bearer := func(name string) []string { return []string{"Authorization", "Bearer " + tokens[name]} }
		d.send("/events/order.created", `{}`, bearer("GATEWAY_API_TOKEN")...)
		got := d.must(200, "GET", "/api/queues/work/messages?wait=5s", "", bearer("GATEWAY_QUEUE_KEY")...)
		if !strings.Contains(got.body, "order.created") {
			t.Errorf("received %s, want the event", got.body)
		}
		d.must(200, "GET", "/metrics", "", bearer("GATEWAY_METRICS_TOKEN")...)
		d.tick(d.worker)
		d.tick(d.cron)
		for _, f := range d.functions() {
			if said := f.Log(); strings.Contains(said, "0123456789abcdef") {
				t.Errorf("%s tells a secret: %s", f.Name, said)
			}
		}
	})
}

const apiToken = "a-token-of-more-than-24-bytes"
