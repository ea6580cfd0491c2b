package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/infra/test/golden"
	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this test binary as "gateway".
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gateway": main})
}

// TestScripts runs the transcripts in testdata/script. Beside the usual commands
// they have:
//
//	exits <code> <command...>   run a command that must end with this exit code
//	interrupted <code> <command...>
//	                            run a command, press Ctrl-C once it has printed something,
//	                            and see it end with this exit code
//	seed <database> <file>      store the events of a file; see seedEvent. The workflows
//	                            of their runs are those of gateway.yaml
//	server <status> <file> [stranger]
//	                            answer every request with this, as a gateway does or a
//	                            stranger; $SERVER is its address, and the file "request"
//	                            holds what it was last asked
//	shelf <folder>              serve the files of a folder; $SHELF is its address
//	port                        set $PORT to a port of this machine that is free
//	sql <database> <statement>  change a database
//
// The condition [root] is met if file permissions do not restrict the user that runs the test.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the default is a second for each command
			return nil
		},
		UpdateScripts: golden.Updating(),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":       exits,
			"interrupted": interrupted,
			"seed":        seed,
			"server":      server,
			"shelf":       shelf,
			"port":        port,
			"sql":         changeDatabase,
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits <code> <command...>")
	}
	var failed *exec.ExitError
	code := 0
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupted <code> <command...>")
	}
	var path string
	var err error
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path, err = exec.LookPath(filepath.Join(dir, args[1])); err == nil {
			break
		}
	}
	ts.Check(err)
	printed := &firstWrite{done: make(chan struct{})}
	c := exec.Command(path, args[2:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = ts.MkAbs("."), environment(ts), printed, printed
	ts.Check(c.Start())
	select {
	case <-printed.done:
	case <-time.After(time.Minute):
		ts.Logf("it has printed nothing within a minute")
	}
	ts.Check(c.Process.Signal(os.Interrupt))
	err = c.Wait()
	ts.Logf("%s", printed.text.Bytes())
	if code := strconv.Itoa(c.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("exit code %s (%v), want %s", code, err, args[0])
	}
}

// environment returns the variables of a script that its commands need.
func environment(ts *testscript.TestScript) (env []string) {
	for _, name := range []string{"PATH", "HOME", "PORT", "SERVER", "GORACE", "GATEWAY_TOKEN"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// A firstWrite closes done at the first write.
type firstWrite struct {
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.Len() == 0 && len(p) > 0 {
		close(w.done)
	}
	return w.text.Write(p)
}

// A seedEvent is an event with its jobs and runs.
type seedEvent struct {
	ID, Source, Type, Payload string
	ContentType, DeliveryID   string
	Headers                   map[string]string
	At                        stamp
	Jobs                      []seedJob
	Runs                      []seedRun
}

// A seedJob is the job of a handler or a queue. A message has no limit of attempts unless
// MaxAttempts is set.
type seedJob struct {
	ID             core.ID
	Handler, Queue string
	Line           string // its key; the line has a limit of 1, and its dead jobs stop it
	MaxAttempts    int
	Attempts       []seedAttempt
}

func (j seedJob) lane() core.Lane {
	if j.Queue != "" {
		return core.QueueLane(j.Queue)
	}
	return core.HandlerLane(j.Handler)
}

func (j seedJob) line() core.Line {
	if j.Line == "" {
		return core.Line{}
	}
	return core.Line{Key: j.Line, Limit: 1}
}

// A seedAttempt ends in a status, or its lease ends without one.
type seedAttempt struct {
	At         stamp
	LeaseEnds  stamp
	StatusCode int
	Error      string
	Response   string
	MS         int
	Then       core.Status
	Due        stamp
	Exchange   *core.Exchange
}

// A stamp is a time in the API's form.
type stamp struct{ t time.Time }

func (s *stamp) UnmarshalText(text []byte) (err error) {
	s.t, err = core.ParseTime(string(text))
	return err
}

func seed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: seed <database> <file>")
	}
	ts.Check(seedDatabase(ts.MkAbs("."), ts.MkAbs(args[0]), ts.ReadFile(args[1])))
}

// seedDatabase stores the events of a text. The folder dir has the gateway.yaml of their
// workflows.
func seedDatabase(dir, database, text string) error {
	var events []seedEvent
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&events); err != nil {
		return err
	}
	conn, err := sqlite.Open(database)
	if err != nil {
		return err
	}
	s := seeder{Store: store.New(conn, store.SQLite, core.SystemClock), due: map[core.ID]time.Time{}}
	defer s.Close()
	if err := s.Migrate(context.Background()); err != nil {
		return err
	}
	for _, e := range events {
		if len(e.Runs) > 0 && s.cfg == nil {
			if s.cfg, err = config.Load(config.Options{FS: hostFS{}, Path: filepath.Join(dir, baseFile), Lookup: os.LookupEnv}); err != nil {
				return err
			}
		}
		if err := s.event(e); err != nil {
			return err
		}
	}
	return nil
}

// A seeder stores events with fixed ids and times. It uses the store's own transitions, so
// that scripts see only states that are possible.
type seeder struct {
	core.Store
	cfg *config.Config
	due map[core.ID]time.Time // due times of waiting jobs

	calls map[string]string // body of the last call of each step, by its path; may be nil
}

func (s seeder) event(e seedEvent) error {
	arrival := core.Arrival{Event: core.Event{
		ID: core.ID(e.ID), Source: e.Source, Type: e.Type, Payload: []byte(e.Payload),
		ContentType: e.ContentType, DeliveryID: e.DeliveryID, Headers: e.Headers, CreatedAt: e.At.t,
	}}
	for _, j := range e.Jobs {
		arrival.Jobs = append(arrival.Jobs, core.NewJob{ID: j.ID, Lane: j.lane(), MaxAttempts: cmp.Or(j.MaxAttempts, core.Unlimited), Line: j.line()})
		s.due[j.ID] = e.At.t
	}
	for _, r := range e.Runs {
		s.begin(&arrival, r)
	}
	if _, err := s.Accept(context.Background(), arrival); err != nil {
		return err
	}
	for _, j := range e.Jobs {
		for i, a := range j.Attempts {
			if err := s.attempt(j, i+1, a); err != nil {
				return err
			}
		}
	}
	for _, r := range e.Runs {
		if err := s.play(e, r); err != nil {
			return err
		}
	}
	return nil
}

func (s seeder) attempt(j seedJob, number int, a seedAttempt) error {
	job, err := s.take(j, a)
	if err != nil || a.Then == "" {
		return err
	}
	s.due[j.ID] = a.Due.t
	if j.Queue != "" && a.Then == core.Completed { // an acknowledged message leaves no attempt
		_, err := s.Ack(context.Background(), a.At.t, j.lane(), []core.Ref{{ID: j.ID, Lease: job.Lease}})
		return err
	}
	_, err = s.Settle(context.Background(), core.Outcome{
		JobID: j.ID, Lane: j.lane(), Line: j.line(), StopsLine: true, Lease: job.Lease, Status: a.Then, DueAt: a.Due.t,
		At: a.At.t.Add(time.Duration(a.MS) * time.Millisecond),
		Attempt: core.Attempt{
			Number: number, StatusCode: a.StatusCode, Error: a.Error, Response: a.Response,
			Duration: time.Duration(a.MS) * time.Millisecond, StartedAt: a.At.t, Exchange: a.Exchange,
		},
	})
	return err
}

// take takes one job, and releases the other due jobs of its lane.
func (s seeder) take(j seedJob, a seedAttempt) (core.TakenJob, error) {
	ends := a.LeaseEnds.t
	if ends.IsZero() {
		ends = a.At.t.Add(time.Minute)
	}
	quota := core.Quota{Lane: j.lane(), N: core.MaxPage, Hold: ends.Sub(a.At.t)}
	taken, err := s.Take(context.Background(), a.At.t, []core.Quota{quota})
	if err != nil {
		return core.TakenJob{}, err
	}
	i := slices.IndexFunc(taken, func(t core.TakenJob) bool { return t.ID == j.ID })
	if i < 0 {
		return core.TakenJob{}, fmt.Errorf("job %s is not due at %s", j.ID, core.FormatTime(a.At.t))
	}
	for _, other := range slices.Delete(slices.Clone(taken), i, i+1) {
		if err := s.Release(context.Background(), s.due[other.ID], other.Job); err != nil {
			return core.TakenJob{}, err
		}
	}
	return taken[i], nil
}

func port(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: port")
	}
	p, err := ports.Reserve()
	ts.Check(err)
	ts.Defer(func() { _ = p.Close() })
	ts.Check(p.Lend())
	ts.Setenv("PORT", strconv.Itoa(p.Number()))
}

func changeDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql <database> <statement>")
	}
	conn, err := sqlite.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer conn.Close()
	_, err = conn.Batch(context.Background(), store.Stmt{Name: "sql", SQL: args[1]})
	ts.Check(err)
}

func shelf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shelf <folder>")
	}
	s := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(s.Close)
	ts.Setenv("SHELF", s.URL)
}

func server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "stranger" {
		ts.Fatalf("usage: server <status> <file> [stranger]")
	}
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	reply, requestFile := ts.ReadFile(args[1]), ts.MkAbs("request")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := os.WriteFile(requestFile, transcript(r, body), 0o666); err != nil {
			panic(err)
		}
		w.Header().Set("X-Gateway-Event-Id", "01J9ZZZZZZZZZZZZZZZZZZZZZZ")
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		if len(args) == 2 {
			w.Header().Set("X-Api-Version", "1")
		}
		w.WriteHeader(status)
		io.WriteString(w, reply)
	}))
	ts.Defer(s.Close)
	ts.Setenv("SERVER", s.URL)
}

// transcript returns a request as it is sent, without the headers that the client adds by
// itself.
func transcript(r *http.Request, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.RequestURI)
	header := r.Header.Clone()
	for _, name := range []string{"User-Agent", "Content-Length", "Accept-Encoding"} {
		header.Del(name)
	}
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, header.Get(name))
	}
	fmt.Fprintf(&b, "\n%s\n", body)
	return b.Bytes()
}
