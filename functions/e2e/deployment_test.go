//go:build linux

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A deployment is the four functions with a database, and their HTTP endpoints.
type deployment struct {
	t   testing.TB
	dir string // the functions are unpacked here
	db  *database
	env []string

	service                    *lambda.Service
	intake, pull, worker, cron *lambda.Function
	api                        *httptest.Server // HTTP API, of intake and pull
	url                        *httptest.Server // function URL of intake
}

// A deploy has the options of a deployment.
type deploy struct {
	config   string // configuration of the gateway, without its database
	folder   string // packaged instead of config; it configures a database too
	env      []string
	receiver *receiver.Receiver // ${RECEIVER}
	change   func(*lambda.Options)
	unready  bool // the schema of the database is not migrated
}

// new deploys the functions and runs none of them. The other functions nudge the worker.
func (o deploy) new(t testing.TB, db *database) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), db: db, service: lambda.New(t)}
	d.api = httptest.NewServer(lambda.Door{Route: d.route})
	d.url = httptest.NewServer(lambda.Door{Route: func(*http.Request) *lambda.Function { return d.intake }, URL: true})
	t.Cleanup(func() { d.api.Close(); d.url.Close(); d.discreet() })
	d.env = append([]string{"GATEWAY_NUDGE=worker", "PUBLIC_URL=" + d.api.URL}, o.env...)
	d.env = append(d.env, db.env...)
	if o.receiver != nil {
		d.env = append(d.env, "RECEIVER="+o.receiver.URL())
	}
	if err := o.pack(d.dir, db); err != nil {
		t.Fatal(err)
	}
	d.intake, d.pull = d.add(o, "intake", 29*time.Second), d.add(o, "pull", 29*time.Second)
	d.worker, d.cron = d.add(o, "worker", 30*time.Second), d.add(o, "cron", 7*time.Second)
	if !o.unready {
		d.gateway("migrate", "up")
	}
	return d
}

// pack puts the configuration into the folder of the functions.
func (o deploy) pack(dir string, db *database) error {
	if o.folder != "" {
		return os.CopyFS(dir, os.DirFS(o.folder))
	}
	return os.WriteFile(filepath.Join(dir, "gateway.yaml"), []byte(o.config+"\n"+db.yaml+"\n"), 0o600)
}

func (d *deployment) add(o deploy, name string, timeout time.Duration) *lambda.Function {
	options := lambda.Options{
		Name: name, Bootstrap: program(name), Root: d.dir, Env: d.env,
		Timeout: timeout, Retries: -1, MaxAge: time.Minute, // like in template.yaml
	}
	if o.change != nil {
		o.change(&options)
	}
	return d.service.Add(options)
}

// discreet requires that no function has logged a secret of its environment.
func (d *deployment) discreet() {
	secrets := []string{lambda.SecretKey, lambda.Session}
	for _, v := range d.db.env {
		if token, ok := strings.CutPrefix(v, "D1_TOKEN="); ok {
			secrets = append(secrets, token)
		}
	}
	for _, f := range d.functions() {
		for _, s := range secrets {
			if strings.Contains(f.Log(), s) {
				d.t.Errorf("%s has told a secret: %s", f.Name, f.Log())
			}
		}
	}
}

// route chooses the function like the routes of template.yaml.
func (d *deployment) route(r *http.Request) *lambda.Function {
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/openapi.json" || r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") {
		return d.pull
	}
	return d.intake
}

// gateway runs the program with the configuration of the functions, as an operator does.
func (d *deployment) gateway(args ...string) string {
	d.t.Helper()
	cmd := exec.Command(program("gateway"), args...)
	cmd.Dir = d.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "AWS_LAMBDA_LOG_STREAM_NAME=none"}, d.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("gateway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (d *deployment) functions() []*lambda.Function {
	return []*lambda.Function{d.intake, d.pull, d.worker, d.cron}
}

// stop ends all copies, like Lambda when it does not need them any more.
func (d *deployment) stop() {
	for _, f := range d.functions() {
		f.Stop()
	}
}

// tick invokes a function like its schedule does, and requires that it succeeds.
func (d *deployment) tick(f *lambda.Function) lambda.Result {
	d.t.Helper()
	r := f.Invoke([]byte(`{"source":"aws.events"}`))
	if r.Error != "" {
		d.t.Fatalf("tick of %s: %s %s", f.Name, r.Error, r.Payload)
	}
	return r
}

// awaitIdle returns when no function is running and every job is finished. A running function
// may still store jobs.
func (d *deployment) awaitIdle(limit time.Duration) {
	d.t.Helper()
	wait.For(d.t, limit, "all functions are idle and all jobs finished", func() bool {
		return !slices.ContainsFunc(d.functions(), busy) && d.db.finished()
	})
}

func busy(f *lambda.Function) bool {
	for _, c := range f.Copies() {
		if c.Busy() {
			return true
		}
	}
	return false
}

// An answer is the response to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) eventID() string { return a.header.Get("X-Gateway-Event-Id") }

var client = &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// ask sends a request. The headers are name, value, name, value.
func ask(method, url, body string, headers ...string) (answer, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, strings.TrimSpace(string(text)), resp.Header}, err
}

// must sends a request to the HTTP API and requires the status.
func (d *deployment) must(status int, method, path, body string, headers ...string) answer {
	d.t.Helper()
	a, err := ask(method, d.api.URL+path, body, headers...)
	if err != nil || a.status != status {
		d.t.Fatalf("%s %s = %d %q, %v, want %d", method, path, a.status, a.body, err, status)
	}
	return a
}

// send posts an event, requires 202, and returns the event's id.
func (d *deployment) send(path, body string, headers ...string) string {
	d.t.Helper()
	return d.must(http.StatusAccepted, http.MethodPost, path, body, headers...).eventID()
}
