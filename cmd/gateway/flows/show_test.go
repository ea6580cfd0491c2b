package flows_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eventgateway/gateway/core"
)

// rename sets the names of this play's ids in transcripts.
func (s *stage) rename() {
	pairs := []string{s.receiver.URL, "http://receiver"}
	for i, id := range s.runs {
		pairs = append(pairs, string(id), "<run"+number(i)+">")
	}
	for i, id := range s.events {
		pairs = append(pairs, id, "<event"+number(i)+">")
	}
	for _, tokens := range s.receiver.tokens {
		for i, token := range tokens {
			pairs = append(pairs, token, "<token"+number(i)+">")
		}
	}
	s.names = strings.NewReplacer(pairs...)
}

func number(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint(" ", i+1)
}

// name replaces the parts of a text that differ between plays.
func (s *stage) name(text string) string {
	s.rename()
	text = s.names.Replace(text)
	for _, v := range varying {
		text = v.found.ReplaceAllString(text, v.shown)
	}
	return text
}

// varying are the parts that differ between plays, besides ids with a name.
var varying = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:port"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "<id>"},
	{regexp.MustCompile(`"created_at":"[^"]*"`), `"created_at":"<time>"`},
	{regexp.MustCompile(`no answer within [-0-9hmsµ.]+`), "no answer within <time>"}, // depends on clocks that were moved
}

// showRequests writes the requests since its last call, and the times that passed between
// them. It writes a time of at least 50 s, rounded up to ten seconds, since the machine needs
// some time itself. Shorter times come from retries, and differ each time.
func (s *stage) showRequests(out *strings.Builder) {
	for _, l := range s.receiver.take() {
		if l.request == nil {
			if up := l.passed + 10*time.Second - time.Nanosecond; l.passed >= 50*time.Second {
				fmt.Fprintf(out, "-- %s later\n", up.Truncate(10*time.Second))
			}
			continue
		}
		fmt.Fprintf(out, "%s %s  %s\n", l.Method, l.path, s.name(l.key))
		for _, h := range s.headers {
			fmt.Fprintf(out, "  %s: %s\n", h, s.name(l.Header.Get(h)))
		}
		if l.Body != "" {
			fmt.Fprintf(out, "  %s\n", s.name(compact(l.Body)))
		}
	}
}

// compact returns JSON without blanks and with sorted keys, since the order of keys is not
// fixed. It shortens long JSON.
func compact(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if json.Valid([]byte(text)) && d.Decode(&value) == nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(value)
		text = strings.TrimSuffix(b.String(), "\n")
	}
	if len(text) > 1000 {
		text = fmt.Sprintf("%s... (%d bytes)", text[:40], len(text))
	}
	return text
}

// showRuns writes the runs of this play that have changed.
func (s *stage) showRuns(out *strings.Builder) {
	for _, id := range s.runs {
		if text := s.showRun(s.run(id)); text != s.shown[id] {
			out.WriteString(text)
			s.shown[id] = text
		}
	}
}

func (s *stage) showRun(r core.Run) string {
	var out strings.Builder
	fmt.Fprintf(&out, "run %s %s", r.Workflow, r.Status)
	if r.Epoch > 1 {
		fmt.Fprintf(&out, " in epoch %d", r.Epoch)
	}
	if r.Error != "" {
		fmt.Fprintf(&out, ": %s", s.name(compact(r.Error)))
	}
	fmt.Fprintln(&out)
	steps := s.steps(r, core.Wanted{All: true})
	if len(steps) > maxShown {
		fmt.Fprintf(&out, "  (%d steps)\n", len(steps))
		steps = steps[len(steps)-1:]
	}
	s.showSteps(&out, steps)
	if r.Output != nil {
		fmt.Fprintf(&out, "  = %s\n", s.name(compact(string(r.Output))))
	}
	return out.String()
}

// maxShown is the number of steps of a run that are shown. If a run has more, the last step is
// shown too.
const maxShown = 50

func (s *stage) showSteps(out *strings.Builder, steps []core.Step) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, st := range steps {
		line := fmt.Sprintf("  %s\t%s\t%s\t%d", st.Path, st.Type, st.Status, st.Attempt)
		if st.Error != "" {
			line += "\t" + strings.ReplaceAll(s.name(compact(st.Error)), "\t", " ")
		}
		fmt.Fprintln(table, line)
	}
	_ = table.Flush()
}

// show returns the records that a section asks for.
func (s *stage) show(words []string) string {
	var out strings.Builder
	switch words[0] {
	case "history":
		for _, e := range s.history(s.latest()) {
			fmt.Fprintln(&out, strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Seq, e.Type, e.Path)))
		}
	case "jobs":
		for _, j := range s.jobs() {
			line := fmt.Sprintf("%s %s %s %s", calledAs(j.Lane), j.Step, j.Status, j.LastError)
			fmt.Fprintln(&out, strings.TrimSpace(s.name(line)))
		}
	case "attempts":
		for _, st := range s.steps(s.run(s.latest()), core.Wanted{Paths: words[1:]}) {
			s.showAttempts(&out, st.ID)
		}
	case "definition":
		for _, row := range s.query("SELECT body FROM definitions ORDER BY body") {
			fmt.Fprintln(&out, s.name(strings.TrimSpace(row[0].(string))))
		}
	}
	return out.String()
}

// latest returns the run that began last.
func (s *stage) latest() core.ID { return s.runs[len(s.runs)-1] }

func calledAs(l core.Lane) string {
	if l.Alert() {
		return "alert"
	}
	return cmp.Or(l.Workflow(), l.Consumer())
}

func (s *stage) showAttempts(out *strings.Builder, job core.ID) {
	attempts, err := s.store.Attempts(s.t.Context(), job, 0, core.MaxPage)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range attempts {
		fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%d %d %s %s", a.Number, a.StatusCode, s.name(a.Error), s.name(compact(a.Response)))))
	}
}
