package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/infra/test/sources"
)

// The test binary serves as the reference too, the way the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == referenceCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := runReference(ctx, os.Args[2:], os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(inFolder(m.Run))
}

// builtIn is where the tests build the gateway.
var builtIn string

func inFolder(run func() int) int {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builtIn = dir
	return run()
}

func TestReferenceFromOneEndToTheOther(t *testing.T) {
	var out, progress bytes.Buffer
	code := run(t.Context(), []string{
		"-db", "sqlite", "-medium", "disk", "-systems", "reference", "-only", "intake,e2e,pull", "-conns", "8", "-quick", "-events", "200", "-dir", t.TempDir(),
	}, &out, &progress)
	if code != 0 {
		t.Fatalf("run() = %d\n%s%s", code, &progress, &out)
	}
	for _, want := range []string{
		"intake, 8 connections", "end to end, 8 connections: CPU an event, with server", "pull, 8 consumers of 10: CPU a message",
		"checks over 3 runs, 720 events: lost 0, duplicated 0, refused 0, unanswered 0, strange 0, unsigned 0\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

// TestSmallestRound runs each measurement, on each database that can be started here, so that a
// broken measurement is found before the next use of the tool. A measurement whose code is the
// same for all databases runs on some of them.
func TestSmallestRound(t *testing.T) {
	if testing.Short() {
		t.Skip("servers are needed")
	}
	batches := []string{"batches of 100: rate, gateway: ", "batches of 100: rate, gateway, an event a request: "}
	rates := []string{"connections: rate, gateway: ", "connections: rate, reference: "}
	queues := []string{"of 10: rate, gateway: ", "of 10: rate, table"}
	wakeUps := []string{"send to receive p50, gateway: ", "send to receive p50, gateway, to a handler: "}
	operations := []string{"10k stored: stats p99, gateway: ", "10k stored: while they wait, jobs, dead p99, gateway: ", "10k stored: events purged a minute, at 200/s, gateway: "}
	lines := []string{"a key an event: rate, gateway: ", "one key: rate, gateway, without lines: ", "3 x 10k jobs that are not due: rate, gateway: "}
	steady := []string{"retention of an hour: accept p99 of a window, median, gateway: ", "retention of an hour: database at the end, over that after a third of the time, gateway: "}
	waiting := []string{"backlog of 1k keys evenly: rate, gateway: ", "one key with 10k waiting: time an event, gateway, 1k waiting: "}
	shared := []string{"2 processes, 50/s each: statements an event, gateway: ", "2 processes, 50/s each: log an event, gateway, one process: ",
		"one process, 1k lanes: statements an event, gateway, one process, one lane: ", "2 processes, 50/s each, 1k lanes: CPU an event, with server, gateway, one process: "}
	pgbench, withPgbench := []string{"postgres on 1ms"}, []string(nil)
	if server.FindPgbench() != "" {
		pgbench, withPgbench = append(pgbench, "pool 32: ", "rate, pgbench: "), []string{"-pgbench"}
	}
	for _, c := range []struct {
		db, medium, only string
		wants            [][]string
		more             []string
	}{
		{"postgres", "cpu", "e2e,pull,backlog,waiting,statistics,processes,steady,operate", [][]string{rates, queues, wakeUps, waiting, operations, shared, steady,
			{"postgres on cpu", "of 10: rate, table, by due time: ", "never analysed: rate, gateway, analysed tables: "}}, nil},
		{"mysql", "cpu", "intake,pull,lines,backlog,waiting,undue,processes", [][]string{rates, queues, wakeUps, lines, waiting, shared}, nil},
		{"sqlite", "disk", "intake,batches,e2e,pull,statistics,steady,operate", [][]string{rates, batches, queues, wakeUps, operations, steady}, nil},
		{"postgres", "1ms", "intake", [][]string{rates, pgbench}, withPgbench},
		{"hosted", "disk", "intake,batches,pull,backlog,waiting", [][]string{rates, batches, queues, waiting}, nil},
	} {
		t.Run(c.db+" on "+c.medium, func(t *testing.T) {
			t.Parallel() // the figures are not looked at; the longest round is the first
			smallestRound(t, slices.Concat(c.wants...), append([]string{"-db", c.db, "-medium", c.medium, "-only", c.only}, c.more...)...)
		})
	}
}

func smallestRound(t *testing.T, wants []string, args ...string) {
	var out, progress bytes.Buffer
	code := run(t.Context(), append(args,
		"-gateway", builtGateway(t), "-conns", "4", "-quick", "-events", "100", "-stored", "10000", "-v", "-dir", t.TempDir(),
	), &out, &progress)
	if code != 0 {
		t.Fatalf("run() = %d\n%s%s", code, &progress, &out)
	}
	if strings.Contains(out.String(), "left out") {
		if os.Getenv("CI") == "true" {
			t.Fatal(out.String())
		}
		t.Skip(out.String())
	}
	for _, want := range append(wants, "lost 0, duplicated 0, refused 0") {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

// builtGateway is the gateway's binary, built once a test run.
func builtGateway(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	if err := sources.Open(); err != nil {
		return "", err
	}
	return buildGateway(context.Background(), builtIn)
})

func TestRunLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"-db", "sqlite", "-medium", "disk", "-systems", "reference", "-only", "start", "-quick", "-dir", dir}, io.Discard, io.Discard); code != 1 {
		t.Errorf("run() of an ended context = %d, want 1", code)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"}, {"-only", "speed"}, {"-conns", "0"}, {"-conns", "many"}, {"-systems", "other"}, {"-rounds", "-1"}, {"-events", "5"}, {"-db", "oracle"}, {"-medium", "tape"}, {"-committers", "-1"}, {"-steady", "2m"}, {"-steady", "25h"}, {"-rate", "-1"}, {"-rate", "1e6"}, {"extra"},
	} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code != 2 {
			t.Errorf("run(%q) = %d, want 2", args, code)
		}
	}
}

func TestQuickIsOneRound(t *testing.T) {
	o, err := parse([]string{"-quick", "-events", "700"}, io.Discard)
	if err != nil || o.rounds != 1 || o.events != 700 || o.idle >= 10*time.Second {
		t.Errorf("parse(-quick) = %+v, %v", o, err)
	}
}

func TestAuditFindsLostEvents(t *testing.T) {
	s, err := sink.Listen(sink.Config{Events: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	warm := &load.Result{Answered: []int64{5}, Accepted: 1}
	measured := &load.Result{Answered: []int64{6, 0}, Accepted: 1, Broken: 1, Err: errors.New("reset")}
	f, err := audit(t.Context(), &running{sink: s}, shape{warm: 1, events: 2}, warm, measured)
	if err != nil || f.Lost != 2 || f.Broken != 1 || !f.any() {
		t.Errorf("audit() = %+v, %v, want two lost and one unanswered", f, err)
	}
	if text := f.String(); !strings.Contains(text, "lost 2") || !strings.Contains(text, "reset") {
		t.Errorf("String() = %q", text)
	}
}

func TestDuplicatesAreAFault(t *testing.T) {
	if f := (faults{Posted: 5, Runs: 1}); f.any() {
		t.Errorf("%+v: any() = true", f)
	}
	if f := (faults{Duplicated: 1}); !f.any() {
		t.Errorf("%+v: any() = false", f)
	}
}

func TestVerdict(t *testing.T) {
	cases := []struct {
		aim          aim
		value, ratio float64
		want         string
	}{
		{ratioAtLeast(0.8), 1, 0.8, "yes"}, {ratioAtLeast(0.8), 1, 0.79, "no"},
		{ratioAtMost(1.5), 1, 1.5, "yes"}, {ratioAtMost(1.5), 1, 1.51, "no"},
		{atMost(2), 2, math.NaN(), "yes"}, {atMost(2), 3, 1, "no"}, {atLeast(0.9), 0.95, math.NaN(), "yes"},
		{ratioAtLeast(0.8), 1, math.NaN(), ""}, {none, 1, 1, ""}, {atMost(2), math.NaN(), math.NaN(), ""},
	}
	for _, c := range cases {
		if got := c.aim.verdict(c.value, c.ratio); got != c.want {
			t.Errorf("%q.verdict(%v, %v) = %q, want %q", c.aim, c.value, c.ratio, got, c.want)
		}
	}
}

func TestReportComparesRounds(t *testing.T) {
	var r report
	s := r.section("postgres", "cpu", "tmpfs")
	s.row(measure{"rate", "events/s", ratioAtLeast(0.8), []string{referenceName, single32Name}})
	s.row(measure{"rate", "events/s", ratioAtLeast(4), []string{single10Name}})
	for i, v := range []float64{90, 100, 10} {
		s.add("rate", gatewayName, v)
		s.add("rate", single32Name, float64(100+i))
		s.add("rate", referenceName, float64(50+i))
		s.add("rate", single10Name, 30)
	}
	var out bytes.Buffer
	r.print(&out, format{markdown: true})
	if want := "| rate | events/s | 90.0 | reference, no groups, pool 32 | 101 | 0.90 | >= 0.8x | yes |\n" +
		"| rate | events/s | 90.0 | reference, no groups, pool 10 | 30.0 | 3.00 | >= 4x | no |\n"; !strings.Contains(out.String(), want) {
		t.Errorf("Markdown lacks %q:\n%s", want, &out)
	}
	out.Reset()
	r.print(&out, format{raw: true})
	for _, want := range []string{
		"rate     events/s     90.0  reference, no groups, pool 32         101   0.90  >= 0.8x  yes\n",
		"rate, gateway: 90.0, 100, 10.0 events/s\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, &out)
		}
	}
}

// TestRatioOfDriftingMachine: a machine that gets faster changes no ratio.
func TestRatioOfDriftingMachine(t *testing.T) {
	m := measure{"rate", "events/s", none, []string{referenceName}}
	s := (&report{}).section("sqlite", "cpu", "tmpfs")
	for _, speed := range []float64{1, 2, 1.2} {
		s.add("rate", gatewayName, 80*speed)
		s.add("rate", referenceName, 100*speed)
	}
	if _, got := s.ratio(m); math.Abs(got-0.8) > 1e-9 {
		t.Errorf("ratio = %v, want 0.8", got)
	}
	// The reference became fast a round later: the medians are of different rounds.
	s = (&report{}).section("sqlite", "cpu", "tmpfs")
	for i, ours := range []float64{80, 80, 84, 160, 160} {
		s.add("rate", gatewayName, ours)
		s.add("rate", referenceName, []float64{100, 100, 190, 200, 200}[i])
	}
	if _, got := s.ratio(m); got != 0.8 {
		t.Errorf("ratio = %v, want 0.8", got)
	}
	// Without rounds, the medians are divided.
	s.add("rate", gatewayName, 84)
	if _, got := s.ratio(m); math.Abs(got-84.0/190) > 1e-9 {
		t.Errorf("ratio = %v, want %v", got, 84.0/190)
	}
	// A figure of 0 has no ratio.
	s = (&report{}).section("sqlite", "cpu", "tmpfs")
	s.add("rate", gatewayName, 1)
	s.add("rate", referenceName, 0)
	if _, got := s.ratio(m); !math.IsNaN(got) {
		t.Errorf("ratio = %v, want none", got)
	}
}

func TestRates(t *testing.T) {
	f := figures{accepted: &load.Result{Start: 0}}
	for i := range 100 {
		f.delivered = append(f.delivered, int64(i+1)*int64(time.Millisecond))
	}
	f.delivered[0] += int64(500 * time.Millisecond) // one straggler
	if got := f.endToEndRate(); math.Abs(got-100/0.501) > 0.01 {
		t.Errorf("endToEndRate() = %v, want %v", got, 100/0.501)
	}
	if got := f.middleRate(); math.Abs(got-1000) > 0.01 {
		t.Errorf("middleRate() = %v, want 1000", got)
	}
}

func TestGatewayConfigNamesTheDatabase(t *testing.T) {
	for driver, want := range map[string]string{
		server.Postgres: "database:\n  driver: postgres\n  url: \"u\"\n",
		server.Hosted:   "database:\n  driver: hosted_sql\n  hosted_sql_endpoint: \"u\"\n  api_token: \"t\"\n",
	} {
		text, err := gatewayConfig(setup{database: &server.Database{Driver: driver, URL: "u", Token: "t"}, addr: "127.0.0.1:1"})
		if err != nil || !strings.HasPrefix(text, want) {
			t.Errorf("gatewayConfig(%s) = %v\n%s\nwant it to begin\n%s", driver, err, text, want)
		}
	}
}

func TestMySQLIsComparedWithPostgres(t *testing.T) {
	b := &bench{report: &report{}}
	rate := measure{"rate", "events/s", ratioAtLeast(0.7), []string{referenceName}}
	for _, driver := range []string{server.Postgres, server.MySQL} {
		b.site = &site{driver: driver, medium: server.CPU, section: b.report.section(driver, server.CPU, "")}
		b.site.section.row(rate)
		b.site.section.add("rate", gatewayName, float64(40*len(driver)))
		b.overPostgres(rate)
	}
	if rows := len(b.report.sections[0].rows); rows != 1 {
		t.Errorf("PostgreSQL has %d rows, want 1", rows)
	}
	var out bytes.Buffer
	b.report.print(&out, format{markdown: true})
	if want := "| rate | events/s | 200 | gateway on postgres | 320 | 0.62 | >= 0.5x | yes |\n"; !strings.Contains(out.String(), want) {
		t.Errorf("Markdown lacks %q:\n%s", want, &out)
	}
}

func TestJudgeFindsLostMessages(t *testing.T) {
	s, plan := system{name: "x"}, consume.Plan{First: 10, Count: 5}
	cases := map[string]struct {
		consumed consume.Result
		posted   []*load.Result
		want     faults
	}{
		"none":      {consume.Result{Acked: 5}, []*load.Result{{Accepted: 5}}, faults{}},
		"lost":      {consume.Result{Acked: 3}, nil, faults{Lost: 2}},
		"refused":   {consume.Result{Acked: 4}, []*load.Result{{Accepted: 4, Refused: 1}}, faults{Refused: 1}},
		"twice":     {consume.Result{Acked: 6, Duplicated: 1}, nil, faults{Duplicated: 1}},
		"something": {consume.Result{Acked: 5, Strange: 1}, nil, faults{Strange: 1}},
		"failed":    {consume.Result{Acked: 5, Err: io.EOF}, nil, faults{Err: io.EOF}},
	}
	for name, c := range cases {
		b := &bench{report: &report{}, progress: io.Discard}
		b.judge(s, plan, &c.consumed, c.posted...)
		got := b.report.faults
		if !errors.Is(got.Err, c.want.Err) {
			t.Errorf("%s: Err = %v, want %v", name, got.Err, c.want.Err)
		}
		got.Err, c.want.Err, c.want.Runs, c.want.Posted = nil, nil, 1, 5
		if got != c.want {
			t.Errorf("%s: judge() = %+v, want %+v", name, got, c.want)
		}
	}
}

func TestGatewayConfigOfAQueue(t *testing.T) {
	s := setup{database: &server.Database{Driver: server.SQLite, URL: "u"}, addr: "127.0.0.1:1", sink: "http://127.0.0.1:9/", slots: queued}
	text, err := gatewayConfig(s)
	if err != nil || !strings.HasSuffix(text, "queues:\n  bench:\n    source: bench\n") || strings.Contains(text, "handlers:") {
		t.Errorf("gatewayConfig() = %v\n%s\nwant a queue and no handler", err, text)
	}
}

func TestGatewayConfig(t *testing.T) {
	s := setup{dir: "/data/x", database: &server.Database{Driver: server.SQLite, URL: "/data/x/bench.db"}, addr: "127.0.0.1:8123", sink: "http://127.0.0.1:9/"}
	for slots, want := range map[int]string{intakeOnly: "max_concurrency: 1\n", 32: "max_concurrency: 32\n", 0: ""} {
		s.slots = slots
		text, err := gatewayConfig(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "max_concurrency") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("slots %d:\n%s\nwant %q", slots, text, want)
		}
		if !strings.Contains(text, "port: 8123\n") || !strings.Contains(text, `url: "/data/x/bench.db"`) {
			t.Errorf("no port or url in:\n%s", text)
		}
	}
}
