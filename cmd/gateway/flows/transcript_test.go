package flows_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"

	"github.com/eventgateway/gateway/infra/test/golden"
)

// TestTranscripts plays testdata/*.txtar on every database. A transcript consists of sections.
// Some set values:
//
//	-- gateway.yaml --         the configuration, as an overlay of the base of these tests
//	-- environment --          variables, NAME=value, or NAME to unset one
//	-- replies --              script of the receiver, see services.tell
//	-- headers --              names of the request headers to show
//	-- clock 90m --            time passes
//
// Some are actions. After each of them gateways tick until only callbacks are missing, unless
// the section has the word "still":
//
//	-- event order.created --  an event with the payload of the section, or with as many
//	                           items as "@items 1000" says
//	-- callback approve --     a callback for the step of this path, with its newest token, or
//	                           with the token of the number after the path, from 1
//	-- token ABC --            a callback with this token
//	-- redrive --              or redrive failed, or redrive failed current: of the first run
//	-- cancel --               of the first run
//	-- run --                  ticks only; with still just one
//
// Some show more: history and attempts <step> of the latest run, jobs for all jobs, definition
// for all definitions. After each action and each of these, a section "then" has the expected
// result.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	places := everywhere
	if golden.Updating() {
		places = places[:1]
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p := p.shared(t)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { play(t, p, file) })
			}
		})
	}
}

func play(t *testing.T, p place, file string) {
	transcript, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stage := &stage{world: newWorld(t, p, ""), shown: map[core.ID]string{}, names: strings.NewReplacer()}
	var played []txtar.File
	var said string
	waiting := false // the result of the last section has not been compared yet
	for _, section := range transcript.Files {
		if waiting != (section.Name == "then") && !golden.Updating() {
			t.Fatalf("section %q: nothing is said of the one before; see -update", section.Name)
		}
		waiting = false
		if section.Name == "then" {
			golden.Compare(t, "after "+played[len(played)-2].Name, string(section.Data), said)
			continue
		}
		played = append(played, section)
		if happened, ok := stage.play(section); ok {
			said, waiting = happened, true
			played = append(played, txtar.File{Name: "then", Data: []byte(said)})
		}
	}
	if waiting && !golden.Updating() {
		t.Fatal("nothing is said of the last section; see -update")
	}
	if transcript.Files = played; golden.Updating() {
		golden.Write(t, file, txtar.Format(transcript))
	}
}

// A stage is the world in which a transcript is played.
type stage struct {
	*world
	runs    []core.ID
	events  []string
	headers []string
	shown   map[core.ID]string
	names   *strings.Replacer // for values that differ between plays
}

// play carries out a section. For a section with an action it returns the shown result, and
// ok.
func (s *stage) play(section txtar.File) (happened string, ok bool) {
	words := strings.Fields(section.Name)
	data := strings.TrimSuffix(string(section.Data), "\n")
	switch words[0] {
	case "gateway.yaml":
		s.configure(string(section.Data))
	case "environment":
		for _, line := range strings.Fields(data) {
			if name, value, given := strings.Cut(line, "="); given {
				s.environment[name] = value
			} else {
				delete(s.environment, name)
			}
		}
	case "replies":
		if err := s.receiver.tell(data); err != nil {
			s.t.Fatal(err)
		}
	case "headers":
		s.headers = strings.Fields(data)
	case "clock":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.clock.move(d)
	case "history", "jobs", "attempts", "definition":
		return s.show(words), true
	default:
		return s.act(words, data), true
	}
	return "", false
}

// act carries out an action and returns the shown result.
func (s *stage) act(words []string, data string) string {
	still := words[len(words)-1] == "still"
	if still {
		words = words[:len(words)-1]
	}
	var out strings.Builder
	if a := s.send(words, data); a != nil {
		fmt.Fprintln(&out, s.name(a.String()))
	}
	var err error
	switch {
	case still && words[0] == "run":
		err = s.tick()
	case !still:
		err = s.rest()
	}
	if err != nil {
		fmt.Fprintln(&out, "error:", err)
	}
	s.showRequests(&out)
	s.showRuns(&out)
	return out.String()
}

// send sends the request of an action, and returns the answer if it is to be shown.
func (s *stage) send(words []string, data string) *answer {
	switch words[0] {
	case "event":
		a := s.ask("POST", "/events/shop/"+words[1], payload(data))
		if a.status != 202 {
			return &a
		}
		id := a.header.Get("x-gateway-event-id")
		s.events = append(s.events, id)
		s.runs = append(s.runs, s.runsOf(core.ID(id))...)
		return nil
	case "callback":
		tokens := s.receiver.tokens[words[1]]
		n := len(tokens)
		if len(words) > 2 {
			fmt.Sscan(words[2], &n)
		}
		if n == 0 || n > len(tokens) {
			s.t.Fatalf("callback of %s: %d tokens were told", words[1], len(tokens))
		}
		a := s.ask("POST", "/callback/"+tokens[n-1], data)
		return &a
	case "token":
		a := s.ask("POST", "/callback/"+words[1], data)
		return &a
	case "redrive":
		body := ""
		if len(words) > 1 {
			body = fmt.Sprintf(`{"from":%q}`, words[1])
		}
		if len(words) > 2 {
			body = fmt.Sprintf(`{"from":%q,"definition":%q}`, words[1], words[2])
		}
		return s.manage("redrive", body)
	case "cancel":
		return s.manage("cancel", "")
	case "run":
		return nil
	}
	s.t.Fatalf("nothing is called %q in a transcript", words[0])
	return nil
}

// payload returns the text of a section, or as many items as it asks for.
func payload(data string) string {
	var n int
	if _, err := fmt.Sscanf(data, "@items %d", &n); err != nil {
		return data
	}
	return `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", n), ",") + `]}`
}

// manage sends a request of an operator, and returns the answer only if it is not 200.
func (s *stage) manage(wish, body string) *answer {
	if a := s.ask("POST", "/api/workflow-runs/"+string(s.runs[0])+"/"+wish, body); a.status != 200 {
		return &a
	}
	return nil
}
