package workflow

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"

	"github.com/eventgateway/gateway/infra/test/golden"
)

// TestTranscripts plays the archives in testdata. The section workflow has the fields of a
// workflow, and payload has the event's payload. The section replies has the results of
// calls, one on each line: the path of the step or * for any, and a status (200 if there is
// no line left) or a class of errors, and a body. The section script has other actions;
// without it the run continues until it is finished or waits for a callback. The section
// story has the expected calls, entries and end.
//
//	go            goes on until the run is finished or waits for a callback
//	clock 1h      lets time pass, and then goes on
//	expire        goes on with a step that waits for a callback, when its time has come
//	callback path body
//	redrive start, redrive failed, cancel
func TestTranscripts(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("Glob(testdata/*.txtar) = %v, %v, want some", archives, err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { transcript(t, name) })
	}
}

func transcript(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"script": "go", "payload": "{}"}
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	got := story(t, files)
	if golden.Updating() {
		kept := a.Files[:0]
		for _, f := range a.Files {
			if f.Name != "story" {
				kept = append(kept, f)
			}
		}
		a.Files = append(kept, txtar.File{Name: "story", Data: []byte(got)})
		golden.Write(t, name, txtar.Format(a))
		return
	}
	golden.Compare(t, name, files["story"], got)
}

// story returns the story of an archive.
func story(t *testing.T, files map[string]string) string {
	var b strings.Builder
	w := newWorld(t, compiled(t, files["workflow"]), payloadOf(files["payload"]))
	w.log = func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	r := scripted(t, files["replies"], w)
	for line := range strings.Lines(files["script"]) {
		line = strings.TrimSpace(line)
		if line != "go" {
			w.log("\n> %s\n", line)
		}
		command(t, w, r, line)
	}
	if len(w.obituaries) > 0 {
		w.log("obituary: %s\n", strings.Join(w.obituaries, ", "))
	}
	w.log("\n%s", w.summary())
	return shortened(b.String())
}

// shortened is a story of which the middle is left out if it is very long.
func shortened(text string) string {
	lines := strings.SplitAfter(text, "\n")
	const most = 400
	if len(lines) > most {
		return strings.Join(lines[:20], "") + fmt.Sprintf("... %d lines\n", len(lines)-40) + strings.Join(lines[len(lines)-20:], "")
	}
	return text
}

// payloadOf is a payload without the end of its line. MANY stands for a thousand arrays
// of eleven elements.
func payloadOf(text string) string {
	row := "[" + strings.Repeat("1,", 10) + "1]"
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "MANY", strings.Repeat(row+",", 999)+row)
}

func command(t *testing.T, w *world, r receiver, line string) {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "go":
	case "clock":
		d, err := time.ParseDuration(rest)
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "expire":
		w.step(w.next(), r)
	case "callback":
		path, body, _ := strings.Cut(rest, " ")
		if !w.callback(path, body) {
			w.log("no good token\n")
		}
	case "redrive":
		said(w, w.redrive(rest == "failed"))
	case "cancel":
		said(w, w.cancel())
	default:
		t.Fatalf("there is no command %q", name)
	}
	w.play(r)
}

func said(w *world, err error) {
	if err != nil {
		w.log("%v\n", err)
	}
}

// scripted is a receiver that answers by lines of text, each used once.
func scripted(t *testing.T, text string, w *world) receiver {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return func(path string, r Request) reply {
		w.log("%s %s key=%s %s\n", r.Method, r.URL, r.Key, r.Body)
		for i, line := range lines {
			name, answer, _ := strings.Cut(line, " ")
			if name != path && name != "*" || line == "" {
				continue
			}
			if name != "*" {
				lines[i] = ""
			}
			a := parsedReply(t, answer)
			w.log("  %s\n", answer)
			return a
		}
		return reply{status: 200}
	}
}

func parsedReply(t *testing.T, text string) (r reply) {
	head, body, _ := strings.Cut(text, " ")
	head, pause, _ := strings.Cut(head, "/")
	if pause != "" {
		d, err := time.ParseDuration(pause)
		if err != nil {
			t.Fatal(err)
		}
		r.pause = d
	}
	r.body = strings.ReplaceAll(body, "LARGE", `"`+strings.Repeat("x", maxState)+`"`)
	status, err := strconv.Atoi(head)
	r.status = status
	if err != nil {
		r.class = core.ErrorClass(head)
	}
	return r
}
