package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

// The test binary serves as the reference too, the way the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == referenceCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := runReference(ctx, os.Args[2:], os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestReferenceFromOneEndToTheOther(t *testing.T) {
	var out, progress bytes.Buffer
	code := run(t.Context(), []string{
		"-systems", "reference", "-only", "intake,e2e", "-conns", "8", "-quick", "-events", "200", "-dir", t.TempDir(),
	}, &out, &progress)
	if code != 0 {
		t.Fatalf("run() = %d\n%s%s", code, &progress, &out)
	}
	for _, want := range []string{
		"intake, 8 connections", "end to end, 8 connections: CPU an event",
		"checks over 2 runs, 480 events: lost 0, duplicated 0, refused 0, unanswered 0, strange 0, unsigned 0\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"-systems", "reference", "-only", "start", "-quick", "-dir", dir}, io.Discard, io.Discard); code != 1 {
		t.Errorf("run() of an ended context = %d, want 1", code)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"}, {"-only", "speed"}, {"-conns", "0"}, {"-conns", "many"}, {"-systems", "other"}, {"-rounds", "-1"}, {"-events", "5"}, {"extra"},
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
	f, err := audit(&running{sink: s}, shape{warm: 1, events: 2}, warm, measured)
	if err != nil || f.Lost != 2 || f.Broken != 1 || !f.fatal() {
		t.Errorf("audit() = %+v, %v, want two lost and one unanswered", f, err)
	}
	if text := f.String(); !strings.Contains(text, "lost 2") || !strings.Contains(text, "reset") {
		t.Errorf("String() = %q", text)
	}
}

func TestDuplicatesAreAFaultButNotFatal(t *testing.T) {
	if f := (faults{Duplicated: 1}); !f.any() || f.fatal() {
		t.Errorf("any, fatal = %v, %v, want true, false", f.any(), f.fatal())
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

func TestReportComparesMedians(t *testing.T) {
	r := newReport()
	m := measure{"rate", "events/s", ratioAtLeast(0.8)}
	for i, v := range []float64{90, 100, 10} {
		r.add(m, gatewayName, v)
		r.add(m, referenceName, float64(100+i))
	}
	var out bytes.Buffer
	r.print(&out, true)
	if want := "| rate | events/s | 90.0 | 101 | 0.89 | >= 0.8x | yes |\n"; !strings.Contains(out.String(), want) {
		t.Errorf("Markdown lacks %q:\n%s", want, &out)
	}
	out.Reset()
	r.print(&out, false)
	if want := "rate     events/s     90.0        101   0.89  >= 0.8x  yes\n"; !strings.Contains(out.String(), want) {
		t.Errorf("table lacks %q:\n%s", want, &out)
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

func TestGatewayConfig(t *testing.T) {
	s := setup{dir: "/data/x", addr: "127.0.0.1:8123", sink: "http://127.0.0.1:9/"}
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
