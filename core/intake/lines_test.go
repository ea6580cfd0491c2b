package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// linesBy returns the lines of a consumer by the value at a path, with a limit of 3.
func linesBy(path string) Lines { return Lines{Key: mustPath(path), Limit: 3} }

// TestLineKeys: the value at the path names the line. A job without a value is in no line.
func TestLineKeys(t *testing.T) {
	most := strings.Repeat("x", core.MaxLineKey)
	for name, tt := range map[string]struct{ key, body, contentType, want string }{
		"text":                   {"$.id", `{"id":"a"}`, "application/json", `a`},
		"text with quotes":       {"$.id", `{"id":"\"a\" \\ é"}`, "", `"a" \ é`},
		"blank":                  {"$.id", `{"id":" "}`, "", ` `},
		"nested":                 {"$.order['line-items'][0].id", `{"order":{"line-items":[{"id":"a"}]}}`, "", `a`},
		"number":                 {"$.id", `{"id":7}`, "", `7`},
		"number as text":         {"$.id", `{"id":"7"}`, "", `7`},
		"number, spelled":        {"$.id", `{"id":7.0e0}`, "", `7`},
		"zero":                   {"$.id", `{"id":-0}`, "", `0`},
		"fraction":               {"$.id", `{"id":-0.50}`, "", `-0.5`},
		"beyond a float":         {"$.id", `{"id":9007199254740993}`, "", `9007199254740993`},
		"true":                   {"$.id", `{"id":true}`, "", `true`},
		"false":                  {"$.id", `{"id":false}`, "", `false`},
		"absent":                 {"$.id", `{}`, "", ``},
		"null":                   {"$.id", `{"id":null}`, "", ``},
		"empty text":             {"$.id", `{"id":""}`, "", ``},
		"object":                 {"$.id", `{"id":{"b":1}}`, "", ``},
		"empty object":           {"$.id", `{"id":{}}`, "", ``},
		"array":                  {"$.id", `{"id":["a"]}`, "", ``},
		"whole object":           {"$", `{"id":"a"}`, "", ``},
		"form":                   {"$.id", `id=7&x=y`, formType, `7`},
		"not JSON":               {"$.id", `id`, "", ``},
		"not JSON, whole":        {"$", `id`, "", `id`},
		"no payload":             {"$.id", ``, "", ``},
		"half a character":       {"$.id", `{"id":"a\ud801"}`, "", "a\ufffd"},
		"longest":                {"$.id", `{"id":"` + most + `"}`, "", most},
		"too long":               {"$.id", `{"id":"` + most + `y"}`, "", digest([]byte(most + "y"))},
		"too long in bytes":      {"$.id", `{"id":"` + strings.Repeat("é", 128) + `"}`, "", digest([]byte(strings.Repeat("é", 128)))},
		"NUL":                    {"$.id", `{"id":"a\u0000b"}`, "", digest([]byte("a\x00b"))},
		"line break":             {"$.id", `{"id":"a\nb"}`, "", digest([]byte("a\nb"))},
		"terminal escape":        {"$.id", `{"id":"\u001b[2J"}`, "", digest([]byte("\x1b[2J"))},
		"text that is like hash": {"$.id", `{"id":"sha256:1"}`, "", digest([]byte("sha256:1"))},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "plain", MaxAttempts: 1, Lines: linesBy(tt.key)},
				Consumer{Lane: "handler/b", Source: "plain", MaxAttempts: 1})
			if _, err := d.Receive(t.Context(), request(Webhook, "plain", tt.body, "Content-Type", tt.contentType)); err != nil {
				t.Fatal(err)
			}
			var got []core.Line
			for _, j := range d.inbox.got[0].Jobs {
				got = append(got, j.Line)
			}
			if diff := cmp.Diff([]core.Line{{Key: tt.want, Limit: 3}, {}}, got); diff != "" {
				t.Errorf("lines of the jobs (-want +got):\n%s", diff)
			}
			if len(got[0].Key) > core.MaxLineKey {
				t.Errorf("the key has %d bytes, want at most %d", len(got[0].Key), core.MaxLineKey)
			}
		})
	}
}

// A handler's line and its idempotency key do not change each other.
func TestLineBesideKey(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "plain", MaxAttempts: 1, Key: mustPath("$.id"), Lines: linesBy("$.customer")})
	if _, err := d.Receive(t.Context(), request(Webhook, "plain", `{"id":"a","customer":7}`)); err != nil {
		t.Fatal(err)
	}
	if j := d.inbox.got[0].Jobs[0]; j.Key != `"a"` || j.Line != (core.Line{Key: "7", Limit: 3}) {
		t.Errorf("job %+v, want key \"a\" and line 7", j)
	}
}

// TestLinesOfBatch: each event of a batch has its own line.
func TestLinesOfBatch(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "app", MaxAttempts: 1, Lines: linesBy("$.id")})
	const one = `{"specversion":"1.0","id":"%","source":"s","type":"t","data":{"id":"%"}}`
	r := request(Event, "app", "["+strings.ReplaceAll(one, "%", "1")+","+strings.ReplaceAll(one, "%", "2")+"]", "Content-Type", arrayOfEvents)
	if _, err := d.ReceiveAll(t.Context(), r); err != nil || len(d.inbox.got) != 2 {
		t.Fatalf("ReceiveAll = %v, stored %d, want 2", err, len(d.inbox.got))
	}
	for i, want := range []string{"1", "2"} {
		if got := d.inbox.got[i].Jobs[0].Line; got != (core.Line{Key: want, Limit: 3}) {
			t.Errorf("job of event %d has the line %+v, want %s", i, got, want)
		}
	}
}

// TestLinesOfTick: the event of a schedule has a payload too.
func TestLinesOfTick(t *testing.T) {
	d := newDoor(append(testSources, Source{Name: "nightly", Kind: Tick, Schedule: "0 3 * * *"}),
		Consumer{Lane: "handler/a", Source: "nightly", MaxAttempts: 1, Lines: linesBy("$.source")})
	if err := d.Fire(t.Context(), "nightly", received); err != nil {
		t.Fatal(err)
	}
	if got := d.inbox.got[0].Jobs[0].Line; got != (core.Line{Key: "nightly", Limit: 3}) {
		t.Errorf("the job has the line %+v, want nightly", got)
	}
}

// TestRematchLines: the job of a replay takes a new place in the line of its event, although it
// has no idempotency key.
func TestRematchLines(t *testing.T) {
	match := Rematch([]Consumer{{Lane: "queue/a", Source: "app", MaxAttempts: 1, Key: mustPath("$.id"), Lines: linesBy("$.id")}}, newDoor(nil).IDs)
	jobs := match(core.Event{ID: "01J00000000000000000000001", Source: "app", Type: "t", Payload: []byte(`{"id":"a"}`)}).Jobs
	if len(jobs) != 1 || jobs[0].Key != "" || jobs[0].Line != (core.Line{Key: "a", Limit: 3}) {
		t.Errorf("jobs %+v, want one without a key and in line a", jobs)
	}
}
