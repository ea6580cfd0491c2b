package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// filledQueue makes a configuration with a queue of three messages, and returns the flags for
// it.
func filledQueue(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	path, database := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "gateway.db")
	text := "database: {url: " + database + "}\nsources: {shop: {type: event}}\nqueues: {orders: {source: shop}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.Open(database)
	if err != nil {
		t.Fatal(err)
	}
	s := seeder{Store: store.New(conn, store.SQLite, core.SystemClock), due: map[core.ID]time.Time{}}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	event := seedEvent{ID: "01J90000000000000000000001", Source: "shop", Type: "t", At: stamp{time.UnixMilli(1_700_000_000_000)}}
	for _, id := range []core.ID{"01J9000000000000000000000A", "01J9000000000000000000000B", "01J9000000000000000000000C"} {
		event.Jobs = append(event.Jobs, seedJob{ID: id, Queue: "orders"})
	}
	if err := s.event(event); err != nil {
		t.Fatal(err)
	}
	return []string{"-c", path}
}

func pending(t *testing.T, config []string) string {
	t.Helper()
	_, out, stderr := session{}.run(t.Context(), append([]string{"queues", "list", "--json"}, config...)...)
	for line := range strings.Lines(out) {
		if _, n, ok := strings.Cut(line, `"pending": `); ok {
			return strings.Trim(n, ",\n")
		}
	}
	t.Fatalf("queues list --json printed %q and said %q", out, stderr)
	return ""
}

func TestDrainAsks(t *testing.T) {
	const question = "gateway: delete 3 messages of queue orders (3 pending, 0 processing, 0 dead)? [y/N] "
	for _, c := range []struct {
		answer  string
		code    int
		pending string
	}{
		{"y\n", exitDone, "0"},
		{"Yes\r\n", exitDone, "0"},
		{"y", exitDone, "0"},
		{"n\n", exitFailed, "3"},
		{"\n", exitFailed, "3"},
		{"yesterday\n", exitFailed, "3"},
		{"\ny\n", exitFailed, "3"},
		{"", exitFailed, "3"},
	} {
		t.Run("answer "+c.answer, func(t *testing.T) {
			config := filledQueue(t)
			s := session{stdin: strings.NewReader(c.answer), attended: true}
			code, _, stderr := s.run(t.Context(), append([]string{"queues", "drain", "orders"}, config...)...)
			if got := pending(t, config); code != c.code || got != c.pending {
				t.Errorf("answering %q: exit code %d and %s messages are left, want %d and %s; it said %s", c.answer, code, got, c.code, c.pending, stderr)
			}
			if !strings.HasPrefix(stderr, question) {
				t.Errorf("asked %q, want %q", stderr, question)
			}
		})
	}
}

// A hangingUp is the input of a session in which the user presses Ctrl-C at a question.
type hangingUp struct{ interrupt func() }

func (h hangingUp) Read([]byte) (int, error) {
	h.interrupt()
	select {}
}

func TestDrainInterruptedWhileAsking(t *testing.T) {
	config := filledQueue(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := session{stdin: hangingUp{cancel}, attended: true}
	if code, _, stderr := s.run(ctx, append([]string{"queues", "drain", "orders"}, config...)...); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; it said %s", code, exitInterrupted, stderr)
	}
	if got := pending(t, config); got != "3" {
		t.Errorf("%s messages are left, want 3", got)
	}
}

// TestReadLineLeavesTheRest: readLine reads nothing after the line break.
func TestReadLineLeavesTheRest(t *testing.T) {
	r := strings.NewReader("y\nrest")
	line, err := readLine(r)
	rest, _ := io.ReadAll(r)
	if line != "y" || string(rest) != "rest" || err != nil {
		t.Errorf("readLine = %q, %v and leaves %q", line, err, rest)
	}
}

// TestConfirmTakesNoAnswerForNo: an error of the terminal is not a yes.
func TestConfirmTakesNoAnswerForNo(t *testing.T) {
	broken := errors.New("input/output error")
	a := newApp(session{stdin: iotest.ErrReader(broken), attended: true}.system(io.Discard, io.Discard))
	if err := a.confirm(t.Context(), "delete everything"); !errors.Is(err, broken) {
		t.Errorf("confirm = %v, want %v", err, broken)
	}
}

func TestAllOfTellsWhereCountingStopped(t *testing.T) {
	for _, c := range []struct {
		tally core.Tally
		ended core.Ended
		want  string
	}{
		{core.Tally{}, core.Ended{Dead: 1}, "1 message of queue q (0 pending, 0 processing, 1 dead)"},
		{core.Tally{Pending: 99_999, Processing: 1}, core.Ended{}, "100000 messages of queue q (99999 pending, 1 processing, 0 dead)"},
		{core.Tally{Pending: core.MaxDepth}, core.Ended{Dead: 7}, "100000 or more messages of queue q (100000 or more pending, 0 processing, 7 dead)"},
	} {
		if got := allOf(manage.Listed{Queue: manage.Queue{Name: "q"}, Tally: c.tally, Ended: c.ended}); got != c.want {
			t.Errorf("allOf(%+v, %+v) = %q, want %q", c.tally, c.ended, got, c.want)
		}
	}
}
