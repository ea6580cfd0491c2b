package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// texts checks that texts are compared byte by byte. Sources, lanes, keys and delivery ids come
// from outside and from configurations. If a database took two different texts for the same,
// events of one sender would be refused as duplicates of another's, or delivered to another
// consumer. If it changed a text, signatures and payloads would be wrong.
var texts = role{name: "Text", checks: []check{
	{"Delivery ids are compared byte by byte", "", oddDeliveryIDs},
	{"Keys are compared byte by byte", "", oddKeys},
	{"Sources are compared byte by byte", "", oddSources},
	{"Lanes are compared byte by byte", "", oddLanes},
	{"Types are compared byte by byte", "", oddTypes},
	{"Sources of marks are compared byte by byte", "", oddMarks},
	{"Schedules of marks are compared byte by byte", "", oddSchedules},
	{"Payloads are stored byte for byte", "", oddPayloads},
	{"Binary payloads are stored byte for byte", "", oddBinary},
	{"Headers are stored byte for byte", "", oddHeaders},
	{"Errors and responses of attempts are stored byte for byte", "", oddAttempts},
}}

// oddTexts are texts that some database or encoding treats as equal to another of them: a collation
// that folds case or accents, a comparison that pads blanks, or a reading as a number, as a
// pattern, or as part of a statement or of JSON.
var oddTexts = []string{
	"billing", "Billing", "BILLING", "bıllıng", "bİlling",
	"a", "a ", "a  ", " a", "a\t", "a\n", "a\r\n", "a\u00a0", "a\u200b",
	"\u00e9", "e\u0301", "e", "ss", "ß", "ǆ", "ǅ", "Å", "\u212b", "ﬁ", "fi", "ж", "и\u0306", "й",
	"😀", "😁", "👩‍💻", "👩", "日本", "\U0010ffff", "\ufeffa", "\ufffd",
	"%", "_", "a%", "a_", "ab", "*", "?", "$1", ":a", "@a", "{key}", "{list}",
	"'", "''", `"`, `""`, "`", `\`, `\\`, `\'`, `\n`, `a\u0000b`, "--", "; DROP TABLE jobs", "/*", "<&>",
	"0", "00", "1", "1.0", "1e0", "01", "-1", "9007199254740993", "null", "NULL", "true", "",
	"[1]", `{"a":1}`, `["a","b"]`,
}

// longTexts are texts of 254 and 255 bytes, the longest that an index takes, which differ only at
// their ends.
var longTexts = []string{
	strings.Repeat("x", 255), strings.Repeat("x", 254), strings.Repeat("x", 254) + "X", strings.Repeat("x", 254) + " ",
	strings.Repeat("😀", 63) + "abc", strings.Repeat("😀", 63) + "abC", strings.Repeat(`"`, 255), strings.Repeat(`\`, 255),
}

// acceptEachTwice accepts an arrival for each text, and then a second arrival for each. All first
// arrivals must be stored, and each second one must repeat the first of its text. So a text that
// the database takes for another one fails in the first round, and one that it does not find again
// fails in the second.
func (r *rig) acceptEachTwice(texts []string, arrive func(text string) core.Arrival) {
	first := map[string]core.ID{}
	for _, s := range texts {
		a := arrive(s)
		first[s] = a.Event.ID
		r.equal(fmt.Sprintf("Accept(%q)", s), r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 1})
	}
	for _, s := range texts {
		got := r.accept(arrive(s))
		r.equal(fmt.Sprintf("Accept(%q) again", s), got, core.Receipt{EventID: first[s], Duplicate: true})
	}
}

// nonEmpty returns the texts that are not empty. An empty text would mean that there is none.
func nonEmpty(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, filtered(l, func(s string) bool { return s != "" })...)
	}
	return out
}

// Delivery ids are compared and read back. Those of providers are URLs, numbers or signatures.
func oddDeliveryIDs(r *rig) {
	r.acceptEachTwice(nonEmpty(oddTexts, longTexts), r.delivered)
	for _, e := range r.events(core.EventFilter{Limit: core.MaxPage}).Items {
		r.equal("Event: DeliveryID", r.storedEvent(e.ID).DeliveryID, e.DeliveryID)
	}
}

// Keys come from payloads, so they may be any text.
func oddKeys(r *rig) {
	texts := nonEmpty(oddTexts, longTexts)
	r.acceptEachTwice(texts, r.keyed)
	got := map[string]bool{}
	for _, j := range r.jobs(core.JobFilter{Limit: core.MaxPage}).Items {
		got[j.Key] = true
	}
	for _, s := range texts {
		r.equal(fmt.Sprintf("Jobs: key %q is there", s), got[s], true)
	}
}

// Each source has its own delivery ids and is selected by itself.
func oddSources(r *rig) {
	texts := nonEmpty(oddTexts)
	r.acceptEachTwice(texts, func(s string) core.Arrival {
		a := r.delivered("d")
		a.Event.Source = s
		return a
	})
	for _, s := range texts {
		p := r.events(core.EventFilter{Source: s})
		if len(p.Items) != 1 || p.Items[0].Source != s {
			r.Errorf("Events(source %q) = %v, want the one event of that source", s, p.Items)
		}
	}
}

// Types and content types are read back, and each type selects only its own event.
func oddTypes(r *rig) {
	texts := nonEmpty(oddTexts)
	for _, s := range texts {
		a := r.arrival()
		a.Event.Type, a.Event.ContentType = s, s
		r.accepted(a)
	}
	for _, s := range texts {
		p := r.events(core.EventFilter{Type: s})
		if len(p.Items) != 1 || p.Items[0].Type != s || p.Items[0].ContentType != s {
			r.Errorf("Events(type %q) = %v, want the one event of that type", s, p.Items)
		}
	}
}

// Each lane has its own keys, jobs, takes and retries, however similar its name is to another.
func oddLanes(r *rig) {
	texts := nonEmpty(oddTexts)
	lane := func(s string) core.Lane { return core.Lane("handler/" + s) }
	first := map[string]core.ID{}
	r.acceptEachTwice(texts, func(s string) core.Arrival {
		a := r.keyed("k")
		a.Jobs[0].Lane = lane(s)
		if first[s] == "" {
			first[s] = a.Jobs[0].ID
		}
		return a
	})
	for _, s := range texts {
		p := r.jobs(core.JobFilter{Lane: lane(s)})
		r.equal(fmt.Sprintf("Jobs(lane %q)", lane(s)), ids(p.Items), []core.ID{first[s]})
		q := core.Quota{Lane: lane(s), N: 9, Hold: leaseTime}
		r.settle(r.ended(r.takeOnly(first[s], q).Job, core.Dead))
	}
	s := texts[0]
	r.equal(fmt.Sprintf("Retry(lane %q)", s), r.retry("", lane(s)), 1)
}

// Sources and schedules of marks are read back in one call.
func oddMarks(r *rig) {
	var want []core.Mark
	for i, s := range nonEmpty(oddTexts, longTexts) {
		m := r.mark(s, time.Duration(i)*time.Second)
		m.Schedule = s
		want = append(want, m)
	}
	r.marked(want...)
	r.wantMarks(want...)
}

// oddSchedules sets marks that go back in time, each of another schedule, so that each replaces
// the one before.
func oddSchedules(r *rig) {
	for i, s := range append(oddTexts, longTexts...) {
		m := r.mark("a", -time.Duration(i)*time.Second)
		m.Schedule = s
		r.marked(m)
		r.wantMarks(m)
	}
}

// payloads returns bodies of valid UTF-8 without NUL bytes.
func payloads() []string {
	out := []string{
		"", " ", "\n", "{}", "null", "0", "1.0", "1e400", "-0", "123456789012345678901234567890.10",
		`{"b":1,"a":2,"b":3}`, `{ "spaced" :  [ 1,2 , 3 ] }`, "{\r\n\t\"crlf\": \"\\r\\n\"\r\n}\r\n",
		`{"nul":"\u0000","lone":"\ud800","pair":"\ud83d\ude00"}`, `\u0000`, `"\/"`,
		"a=1&b=%00&c=%F0%9F%98%80", "<xml>&amp;</xml>", "not json {", "'; DROP TABLE events; --",
		"\u00e9 e\u0301 \u212b ß ﬁ", "\ufeff{}", "\u2028\u2029\u0085", "\x01\x02\x1b[31m\x7f", "\u0080\u009f",
		"😀👩‍💻🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\ue000\ufdd0\ufffe\uffff\U0010ffff", "مرحبا שלום", "trailing blanks   ", "100% _",
	}
	var all strings.Builder // every seventh character of the first two planes
	for c := rune(1); c < 0x20000; c += 7 {
		if c < 0xd800 || c > 0xdfff {
			all.WriteRune(c)
		}
	}
	line := `{"text":"` + strings.Repeat("é😀x\\\"", 100) + "\"}\n"
	mib := strings.Repeat(line, 1<<20/len(line)+1)
	return append(out, all.String(), strings.ToValidUTF8(mib[:1<<20], "?"))
}

// Signatures are checked over payloads, so not a byte may change, not even in JSON that a database
// could write in another way. Payloads are read by Take and by Event.
func oddPayloads(r *rig) {
	var want []core.Event
	for _, p := range payloads() {
		a := r.arrival(r.lane)
		a.Event.Payload = []byte(p)
		r.accepted(a)
		want = append(want, a.Event)
	}
	got := map[core.ID]core.Event{}
	for _, j := range r.take(len(want)) {
		got[j.EventID] = j.Event
	}
	for _, e := range want {
		r.equalBytes("Take: payload", got[e.ID].Payload, e.Payload)
		r.equalBytes("Event: payload", r.storedEvent(e.ID).Payload, e.Payload)
	}
}

// oddBinary stores binary payloads next to text payloads, and reads them by each method.
func oddBinary(r *rig) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := map[core.ID]core.Event{}
	for _, p := range [][]byte{{0}, {0xff}, []byte("a\x00b"), every, bytes.Repeat(every, 1<<10), []byte("\xe9t\xe9"), []byte("{\"a\": \"\xff\"}")} {
		a, text := r.arrival(r.lane), r.arrival(r.lane)
		a.Event.Payload, a.Event.Binary, a.Event.ContentType = p, true, "image/png"
		text.Event.Payload = []byte("AP8=") // valid base64, but a text
		r.accepted(a)
		r.accepted(text)
		want[a.Event.ID], want[text.Event.ID] = a.Event, text.Event
	}
	for _, j := range r.take(len(want)) {
		r.equalBytes("Take: payload", j.Event.Payload, want[j.EventID].Payload)
		r.equal("Take: binary", j.Event.Binary, want[j.EventID].Binary)
	}
	for id, e := range want {
		stored := r.storedEvent(id)
		r.equalBytes("Event: payload", stored.Payload, e.Payload)
		r.equal("Event: binary", stored.Binary, e.Binary)
	}
}

// equalBytes compares texts that are too long to print in full.
func (r *rig) equalBytes(what string, got, want []byte) {
	r.Helper()
	if !bytes.Equal(got, want) {
		r.Errorf("%s = %q (%d bytes), want %q (%d bytes)", what, shortened(string(got)), len(got), shortened(string(want)), len(want))
	}
}

// Headers are stored as JSON, in which odd names and values must survive. A missing header and an
// empty one differ.
func oddHeaders(r *rig) {
	all := map[string]string{}
	for i, s := range append(payloads()[:20], oddTexts...) {
		all[fmt.Sprintf("x-%d", i)] = s
	}
	byName := map[string]string{}
	for i, s := range nonEmpty(oddTexts) {
		byName[s] = fmt.Sprint(i)
	}
	for _, h := range []map[string]string{nil, {}, {"ce-id": ""}, all, byName, {"x-long": strings.Repeat("é\"\\", 10_000)}} {
		a := r.arrival(r.lane)
		a.Event.Headers = h
		r.accepted(a)
		r.equal("Event: headers", r.storedEvent(a.Event.ID).Headers, h)
		r.equal("Take: headers", r.take(1)[0].Event.Headers, h)
	}
}

// Errors and responses of handlers are any text up to core.MaxResponse bytes.
func oddAttempts(r *rig) {
	texts := append([]string{strings.Repeat("é😀\\\"'x", core.MaxResponse/12)}, nonEmpty(oddTexts)...)
	texts = append(texts, filtered(payloads(), func(s string) bool { return len(s) <= core.MaxResponse })...)
	r.accepted(r.arrival(lanes(r.lane, len(texts))...))
	var outcomes []core.Outcome
	for i, j := range r.take(len(texts)) {
		o := r.ended(j.Job, core.Dead)
		o.Attempt.Error, o.Attempt.Response = "status: "+texts[i], texts[i]
		outcomes = append(outcomes, o)
	}
	r.settle(outcomes...)
	for _, o := range outcomes {
		r.equal("Attempts", r.attempts(o.JobID), []core.Attempt{o.Attempt})
		r.equal("Job: last error", r.job(o.JobID).LastError, o.Attempt.Error)
	}
}
