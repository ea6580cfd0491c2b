package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Ids of events in replays, and the request bodies of the client.
const (
	eventA = "01J9000000000000000000000A"
	eventM = "01J9000000000000000000000M"
	eventZ = "01J9000000000000000000000Z"

	askDry   = `{"source":"shop","limit":100,"dry_run":true}`
	askWhole = `{"source":"shop","first":"` + eventA + `","last":"` + eventZ + `"}`
	askRest  = `{"source":"shop","first":"` + eventM + `","last":"` + eventZ + `"}`
)

// replayer is a gateway with scripted replies to replays. The last reply is repeated. An empty
// reply stands for an error.
type replayer struct {
	replies []string
	asked   string
	before  func(r *http.Request, n int) // called before the n-th reply
}

func (s *replayer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked += string(body)
	n := strings.Count(s.asked, "}")
	if s.before != nil {
		s.before(r, n)
	}
	w.Header().Set("X-Api-Version", "1")
	if n > len(s.replies) {
		n = len(s.replies)
	}
	if s.replies[n-1] == "" {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	io.WriteString(w, s.replies[n-1])
}

func replyOf(events int, next string) string {
	text := fmt.Sprintf(`{"looked_at":%[1]d,"events":%[1]d,"jobs":3,"first":%[2]q,"last":%[3]q,"has_more":%[4]t,"next":null}`, events, eventA, eventZ, next != "")
	if next != "" {
		text = strings.Replace(text, "null", `"`+next+`"`, 1)
	}
	return text
}

const replyNone = `{"looked_at":0,"events":0,"jobs":0,"first":null,"last":null,"has_more":false,"next":null}`

func (s *replayer) run(ctx context.Context, answer string, args ...string) (code int, stdout, stderr string) {
	server := httptest.NewServer(s)
	defer server.Close()
	code, stdout, stderr = session{stdin: strings.NewReader(answer), attended: true}.run(ctx, append([]string{"events", "replay", "--url", server.URL}, args...)...)
	return code, stdout, strings.ReplaceAll(stderr, server.URL, "URL")
}

// TestEventsReplayAsks: the question has the counts, and after "y" exactly the counted events
// are replayed.
func TestEventsReplayAsks(t *testing.T) {
	const question = "gateway: replay 2 events: 3 jobs? [y/N] "
	const (
		none     = "no events\n"
		unwanted = "3 events, which no handler, queue or workflow wants; \"gateway inspect <event id>\" says why\n"
	)
	two := replyOf(2, "")
	for _, c := range []struct {
		name, answer string
		args         []string
		reply        string
		code         int
		stdout       string
		stderr       string
		asked        string
	}{
		{"yes", "y\n", nil, two, exitDone, "replayed 2 events: 3 jobs\n", question, askDry + askWhole},
		{"no", "n\n", nil, two, exitFailed, "", question + "gateway: nothing was done\n", askDry},
		{"no answer", "", nil, two, exitFailed, "", question + "gateway: nothing was done\n", askDry},
		{"nobody wants them", "", nil, strings.Replace(replyOf(0, ""), "0", "3", 1), exitDone, "", unwanted, askDry},
		{"some of them", "y\n", []string{"-y"}, strings.Replace(two, "2", "5", 1), exitDone, "replayed 2 events of 5: 3 jobs\n", "", askDry + askWhole},
		{"none at all", "", []string{"-y"}, replyNone, exitDone, "", none, askDry},
		{"not asked", "", []string{"-y"}, two, exitDone, "replayed 2 events: 3 jobs\n", "", askDry + askWhole},
		{"only counted", "", []string{"-y", "--dry-run"}, two, exitDone, "would replay 2 events: 3 jobs\n", "", askDry},
		{"from one to another", "y\n", []string{"--from", strings.ToLower(eventA), "--to", eventZ}, two, exitDone, "replayed 2 events: 3 jobs\n", question,
			strings.TrimSuffix(askWhole, "}") + `,"dry_run":true}` + askWhole},
	} {
		s := &replayer{replies: []string{c.reply}}
		code, stdout, stderr := s.run(t.Context(), c.answer, append(c.args, "--source", "shop")...)
		if code != c.code || stdout != c.stdout || stderr != c.stderr || s.asked != c.asked {
			t.Errorf("%s: ends with %d, prints %q, says %q and asks for %s", c.name, code, stdout, stderr, s.asked)
		}
	}
}

// A replay of several turns, as a gateway of an earlier version does it, looks like one replay to the user.
func TestEventsReplayTakesTurns(t *testing.T) {
	s := &replayer{replies: []string{replyOf(1000, eventM), replyOf(500, ""), replyOf(1000, eventM), replyOf(500, "")}}
	code, stdout, stderr := s.run(t.Context(), "y\n", "--source", "shop")
	dryRest := strings.TrimSuffix(askRest, "}") + `,"dry_run":true}`
	if want := askDry + dryRest + askWhole + askRest; s.asked != want {
		t.Errorf("asks for %s, want %s", s.asked, want)
	}
	if code != exitDone || stdout != "replayed 1500 events: 6 jobs\n" || stderr != "gateway: replay 1500 events: 6 jobs? [y/N] " {
		t.Errorf("ends with %d, prints %q, says %q", code, stdout, stderr)
	}
}

// A replay that an operation goes on with is not asked for again. The user learns how to see the operation.
func TestEventsReplayIsLeft(t *testing.T) {
	const id = "01J9000000000000000000000N"
	left := strings.TrimSuffix(replyOf(900, ""), "}") + `,"operation":"` + id + `"}`
	const note = "the operation goes on while a gateway runs; 900 events replayed until now; to see it: gateway operations watch " + id +
		"%[1]s --url URL; to end it: gateway operations cancel " + id + "%[1]s --url URL\n"
	for _, c := range []struct {
		args         []string
		stdout, flag string
	}{
		{[]string{"-y"}, "replayed 900 events: 3 jobs\n", ""},
		{[]string{"-y", "--json"}, `"operation": "` + id + `"`, " --json"},
	} {
		s := &replayer{replies: []string{replyOf(1000, eventM), left}}
		code, stdout, stderr := s.run(t.Context(), "", append(c.args, "--source", "shop")...)
		if code != exitDone || !strings.Contains(stdout, c.stdout) || stderr != fmt.Sprintf(note, c.flag) || s.asked != askDry+askWhole {
			t.Errorf("%v: ends with %d, prints %q, says %q and asks for %s", c.args, code, stdout, stderr, s.asked)
		}
	}
}

// After an error the user learns where to look: whether the replay was begun is not known.
func TestEventsReplayFails(t *testing.T) {
	s := &replayer{replies: []string{replyOf(1000, eventM), ""}}
	code, stdout, stderr := s.run(t.Context(), "", "-y", "--source", "shop")
	const note = "if the replay was begun, it goes on while the gateway runs; to see it: gateway operations list --url URL\n"
	if code != exitFailed || stdout != "" || !strings.HasPrefix(stderr, note) || strings.Count(stderr, "\n") != 2 {
		t.Errorf("ends with %d, prints %q, says\n%s", code, stdout, stderr)
	}
}

// A replay that ends early at a gateway of an earlier version prints how far it came and a command that
// continues it. The command works.
func TestEventsReplayGoesOn(t *testing.T) {
	const rest = " until then, and perhaps some of the next 1000; to go on: gateway events replay --from %s --since 2024-10-01T10:00:00.000 --source shop --to " + eventZ + " --url URL --yes\n"
	args := []string{"-y", "--limit", "5000", "--source", "shop", "--since", "2024-10-01T10:00:00"}
	for _, c := range []struct {
		name    string
		replies []string
		code    int
		stderr  string
	}{
		{"trouble on the way", []string{replyOf(1000, eventM), replyOf(1000, eventM), ""}, exitFailed, "replayed 1000 events: 3 jobs" + fmt.Sprintf(rest, eventM)},
	} {
		s := &replayer{replies: c.replies}
		code, stdout, stderr := s.run(t.Context(), "", args...)
		if code != c.code || stdout != "" || !strings.HasPrefix(stderr, c.stderr) || strings.Count(stderr, "\n") != 2 {
			t.Errorf("%s: ends with %d, prints %q, says\n%swant\n%s", c.name, code, stdout, stderr, c.stderr)
		}
	}

	ctx, interrupt := context.WithCancel(t.Context())
	s := &replayer{replies: []string{replyOf(1000, eventM)}, before: func(r *http.Request, n int) {
		if n == 3 {
			interrupt()
			<-r.Context().Done() // otherwise the reply may come first, and count
		}
	}}
	code, _, stderr := s.run(ctx, "", args...)
	if want := "replayed 1000 events: 3 jobs" + fmt.Sprintf(rest, eventM); code != 130 || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "interrupted") {
		t.Errorf("interrupted: ends with %d, says\n%swant\n%s", code, stderr, want)
	}
}
