package boot

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// theSecret must be in no error and no log.
const theSecret = "s3cret-value"

// extension plays the AWS Parameters and Secrets extension, with an answer for each name.
func extension(t *testing.T, answers map[string]func(http.ResponseWriter)) (port string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Aws-Parameters-Secrets-Token") != "session" {
			http.Error(w, "no token", http.StatusForbidden)
			return
		}
		name := r.FormValue("secretId")
		if strings.HasPrefix(r.URL.Path, "/systemsmanager/parameters/get") && r.FormValue("withDecryption") == "true" {
			name = r.FormValue("name")
		}
		if answer := answers[name]; answer != nil {
			answer(w)
			return
		}
		http.Error(w, `{"__type":"ParameterNotFound"}`, http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	u, _ := url.Parse(server.URL)
	return u.Port(), asked
}

func says(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestSecrets(t *testing.T) {
	port, _ := extension(t, map[string]func(http.ResponseWriter){
		"/gateway/token":    says(200, `{"Parameter":{"Value":"`+theSecret+`","Version":1},"ResultMetadata":{}}`),
		"/empty":            says(200, `{"Parameter":{"Value":""}}`),
		"text":              says(200, `{"Name":"text","SecretString":"`+theSecret+`"}`),
		"arn:aws:x:1:a/b-c": says(200, `{"SecretString":"{\"url\":\"`+theSecret+`\",\"port\":5432,\"tls\":true,\"none\":null,\"list\":[1]}"}`),
		"binary":            says(200, `{"SecretBinary":"czNjcmV0LXZhbHVl"}`),
		"nothing":           says(200, `{}`),
		"garbage":           says(200, theSecret),
		"null":              says(200, `null`),
		"page":              says(200, `<html><body>Sign in</body></html>`),
		"silence":           says(200, ``),
		"nesting":           says(200, `{"SecretString":{"SecretString":"x"},"Parameter":[{"Value":"x"}]}`),
		"nulls":             says(200, `{"SecretString":null,"Parameter":null,"SecretBinary":null}`),
		"number":            says(200, `{"SecretString":1e999}`),
		"deep":              says(200, strings.Repeat("[", 100_000)),
		"huge":              says(200, `{"SecretString":"`+strings.Repeat("x", 1<<20)+`"}`),
		"field":             says(200, `{"SecretString":"{\"key\": {\"key\": 1}, \"none\": null}"}`),
		"nofields":          says(200, `{"SecretString":"null"}`),
		"redirect":          says(302, ``),
		"denied":            says(400, `{"__type":"AccessDeniedException","Message":"User: arn:aws:sts::1:assumed-role/r is not authorized, session"}`),
		"busy":              says(429, `{"__type":"ThrottlingException"}`),
		"long":              says(500, strings.Repeat("x", 10_000)),
	})
	for _, tt := range []struct{ value, want, refusal string }{
		{"plain", "plain", ""},
		{"", "", ""},
		{"ssm", "ssm", ""},
		{"ssm:/gateway/token", theSecret, ""},
		{"ssm:/empty", "", ""},
		{"secretsmanager:text", theSecret, ""},
		{"secretsmanager:arn:aws:x:1:a/b-c#url", theSecret, ""},
		{"secretsmanager:arn:aws:x:1:a/b-c#port", "5432", ""},
		{"secretsmanager:arn:aws:x:1:a/b-c#tls", "true", ""},
		{"secretsmanager:arn:aws:x:1:a/b-c#none", "", "is no text, number or truth value"},
		{"secretsmanager:arn:aws:x:1:a/b-c#list", "", "is no text, number or truth value"},
		{"secretsmanager:arn:aws:x:1:a/b-c#user", "", `has no field "user"`},
		{"secretsmanager:text#url", "", "is no JSON object"},
		{"secretsmanager:binary", "", "the secret binary is binary"},
		{"secretsmanager:nothing", "", "has no value"},
		{"secretsmanager:garbage", "", "makes no sense"},
		{"secretsmanager:null", "", "has no value"},
		{"ssm:null", "", "has no value"},
		{"secretsmanager:page", "", "makes no sense"},
		{"secretsmanager:silence", "", "makes no sense"},
		{"secretsmanager:nesting", "", "makes no sense"},
		{"ssm:nesting", "", "makes no sense"},
		{"secretsmanager:nulls", "", "has no value"},
		{"ssm:nulls", "", "has no value"},
		{"secretsmanager:number", "", "makes no sense"},
		{"secretsmanager:deep", "", "makes no sense"},
		{"secretsmanager:huge", "", "makes no sense"},
		{"secretsmanager:field#key", "", "is no text, number or truth value"},
		{"secretsmanager:nofields#key", "", `has no field "key"`},
		{"secretsmanager:redirect", "", "status 302"},
		{"ssm:/none", "", "the parameter /none cannot be read: status 400"},
		{"ssm:denied", "", "not authorized, [token]"},
		{"ssm:busy", "", "status 429"},
		{"ssm:long", "", "status 500"},
		{"ssm:", "", "its value names no parameter or secret"},
		{"secretsmanager:#key", "", "its value names no parameter or secret"},
	} {
		env := map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port, "AWS_SESSION_TOKEN": "session", "TOKEN": tt.value}
		f, _ := newTest(t, gateway.IntakeRoutes, minimal, env)
		got, ok := f.secrets.during(context.Background())("TOKEN")
		err := f.secrets.missing()
		if got != tt.want || ok != (tt.refusal == "") {
			t.Errorf("%s is %q, %v, want %q", tt.value, got, ok, tt.want)
		}
		if tt.refusal == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.value, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "the environment variable TOKEN: ") || !strings.Contains(err.Error(), tt.refusal) || len(err.Error()) > 500 {
			t.Errorf("%s: %v, want the variable and %q", tt.value, err, tt.refusal)
		}
		if strings.Contains(err.Error(), theSecret) || strings.Contains(err.Error(), "session") {
			t.Errorf("%s: %v tells a secret", tt.value, err)
		}
	}
}

// TestSecretsInConfigurations: one error names all missing values. Each value is fetched once,
// and later lookups use it.
func TestSecretsInConfigurations(t *testing.T) {
	port, asked := extension(t, map[string]func(http.ResponseWriter){
		"/token": says(200, `{"Parameter":{"Value":"`+theSecret+`"}}`),
	})
	env := map[string]string{
		"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port, "AWS_SESSION_TOKEN": "session",
		"TOKEN": "ssm:/token", "ONE": "ssm:/one", "TWO": "secretsmanager:two",
	}
	f, _ := newTest(t, gateway.IntakeRoutes, minimal+"api: {auth_token: '${TOKEN}', metrics_auth_token: '${TOKEN}'}\n", env)
	c, err := f.loadConfig(context.Background())
	if err != nil || c.API.AuthToken.First() != theSecret || asked.Load() != 1 {
		t.Fatalf("loadConfig = %v, asked %d times, want the token and once", err, asked.Load())
	}
	if v, ok := c.Lookup("TOKEN"); v != theSecret || !ok {
		t.Errorf("Lookup later = %q, %v, want what is known", v, ok)
	}
	if _, ok := c.Lookup("NONE"); ok {
		t.Error("a variable that is not set is")
	}
	unready, log := newTest(t, gateway.IntakeRoutes, minimal+"api: {auth_token: '${ONE}', metrics_auth_token: '${TWO}'}\n", env)
	err = unready.begin(context.Background())
	for _, want := range []string{"the environment variable ONE: ", "the environment variable TWO: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("begin = %v, want %q in it", err, want)
		}
	}
	if strings.Contains(log.String(), theSecret) {
		t.Errorf("the log tells a secret: %s", log)
	}
}

// TestExtensionThatStartsLate: a function asks the extension until it is ready, but only once
// while the environment is made.
func TestExtensionThatStartsLate(t *testing.T) {
	var ready atomic.Bool
	var early atomic.Int32
	answer := func(w http.ResponseWriter) {
		if !ready.Load() && early.Add(1) < 4 || !ready.Load() && early.Load() > 10 {
			says(400, "not ready to serve traffic, please wait")(w)
			return
		}
		says(200, `{"Parameter":{"Value":"`+theSecret+`"}}`)(w)
	}
	port, _ := extension(t, map[string]func(http.ResponseWriter){"/token": answer})
	env := map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port, "AWS_SESSION_TOKEN": "session", "TOKEN": "ssm:/token"}
	yaml := minimal + "api: {auth_token: '${TOKEN}'}\n"
	f, _ := newTest(t, gateway.IntakeRoutes, yaml, env)
	f.secrets.patient.Store(true)
	if _, err := f.loadConfig(context.Background()); err != nil || early.Load() != 4 {
		t.Errorf("loadConfig = %v after %d tries, want the value by the fourth", err, early.Load())
	}
	early.Store(10)
	f, log := newTest(t, gateway.IntakeRoutes, yaml, env)
	if err := f.begin(context.Background()); err != nil || early.Load() != 11 || log.String() != "" {
		t.Errorf("begin = %v after %d tries, want the environment to come up after one, and say nothing: %s", err, early.Load()-10, log)
	}
	s := &server{f}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if text, err := s.Invoke(ctx, post("/events/app/a", "{}")); err != nil || !strings.Contains(string(text), `"statusCode":503`) || strings.Contains(string(text), "TOKEN") {
		t.Errorf("Invoke = %s, %v, want 503 without a reason", text, err)
	}
	if !strings.Contains(log.String(), "add its layer to the function") {
		t.Errorf("what is missing is not in the log: %s", log)
	}
	ready.Store(true)
	withStore(t, f)
	if r := s.ask(t, post("/events/app/a", "{}")); r.StatusCode != 401 {
		t.Errorf("%+v, want the token asked for", r)
	}
}

// TestManySecretsWithoutExtension: with any number of variables, the log names the missing
// ones before the invocation ends.
func TestManySecretsWithoutExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, yaml := map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": "1"}, minimal
		for _, name := range strings.Split("ABCDEFGHIJ", "") {
			env[name] = "ssm:/" + name
			yaml += "  app" + strings.ToLower(name) + ": {type: webhook, verify: github, secret: '${" + name + "}'}\n"
		}
		f, _ := newTest(t, gateway.IntakeRoutes, yaml, env)
		f.secrets.client.Transport = unreachable{}
		f.secrets.patient.Store(true)
		began := time.Now()
		_, err := f.loadConfig(context.Background())
		if took := time.Since(began); !core.IsKind(err, core.Unavailable) || took > 20*time.Second {
			t.Errorf("loadConfig = %v after %v, want a refusal with time left of 29 s", err, took)
		}
		for name := range env {
			if len(name) == 1 && !strings.Contains(err.Error(), "variable "+name+": ") {
				t.Errorf("%v, want %s in it", err, name)
			}
		}
	})
}

// TestNoExtension: connections to the extension are refused. It may still be starting, so the
// error is of kind Unavailable.
func TestNoExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": "1", "TOKEN": "ssm:/token"}
		f, _ := newTest(t, gateway.IntakeRoutes, minimal, env)
		f.secrets.client.Transport = unreachable{}
		f.secrets.patient.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, ok := f.secrets.during(ctx)("TOKEN")
		if err := f.secrets.missing(); ok || !core.IsKind(err, core.Unavailable) {
			t.Errorf("missing = %v, want a refusal that another try may not meet", err)
		}
	})
}
