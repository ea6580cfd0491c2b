package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// hostile would steer a terminal, hide other text, or end a line. It has escape sequences, C1
// controls, bidirectional overrides, a line break and invisible characters.
const hostile = "\x1b[2J\x1b]0;title\x07\u009b31m\u202egnp.exe\u2066\r\nroot# \x7f\u200b\u00ad\U000e0041"

// hostileWorld returns a configuration and a database in which all text from outside is
// hostile. The test adds invalid UTF-8 later.
func hostileWorld(t *testing.T) *txtar.Archive {
	t.Helper()
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	seed := strings.ReplaceAll(`[
	  {"id": "01J90000000000000000000001", "source": EVIL, "type": EVIL, "payload": EVIL, "contentType": EVIL, "deliveryID": EVIL,
	   "headers": {"ce-evil": EVIL}, "at": "2024-10-01T10:00:00.000", "jobs": [
	    {"id": "01J9000000000000000000000D", "handler": EVIL, "maxAttempts": 1, "attempts": [
	      {"at": "2024-10-01T10:00:00.010", "statusCode": 500, "error": EVIL, "response": EVIL, "ms": 7, "then": "dead"}]},
	    {"id": "01J9000000000000000000000E", "queue": "orders", "maxAttempts": 1, "attempts": [
	      {"at": "2024-10-01T10:00:00.010", "error": EVIL, "then": "dead"}]},
	    {"id": "01J9000000000000000000000F", "queue": "orders"}]},
	  {"id": "01J90000000000000000000002", "source": "shop", "type": "order.paid", "payload": "{\"evil\":EVILJSON}", "at": "2024-10-01T10:00:00.000", "runs": [
	    {"id": "01J9000000000000000000000R", "job": "01J9000000000000000000000S", "workflow": "ship", "replies": {"pack": [OKEVIL], "send": [EVIL]}}]}
	]`, "EVILJSON", strings.ReplaceAll(string(quoted), `"`, `\"`))
	ok, _ := json.Marshal("200 " + string(quoted))
	seed = strings.ReplaceAll(strings.ReplaceAll(seed, "OKEVIL", string(ok)), "EVIL", string(quoted))
	return &txtar.Archive{Files: []txtar.File{
		{Name: "gateway.yaml", Data: []byte(`
sources: {shop: {type: event}}
queues: {orders: {source: shop}}
workflows: {ship: {source: shop, events: [order.paid], steps: [{name: pack, url: "https://example.com/pack"}, {name: send, url: "https://example.com/send"}]}}
`)},
		{Name: "seed.json", Data: []byte(seed)},
	}}
}

// TestHostileText: every command escapes text from outside, on the database and through a
// server. With --json the output stays JSON.
func TestHostileText(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	server := beside(t, dir, hostileWorld(t))
	spoil(t, "jobs SET last_error = last_error", "attempts SET error = error", "attempts SET response = response",
		"events SET payload = payload", "events SET type = type", "steps SET error = error")
	for _, line := range []string{
		"events list", "inspect 01J90000000000000000000001", "inspect 01J90000000000000000000002",
		"jobs list", "jobs retry 01J9000000000000000000000S", "jobs list --status dead",
		"queues list", "queues inspect orders", "queues peek orders", "queues dlq orders",
		"workflow-runs list", "workflow-runs inspect 01J9000000000000000000000R", "workflow-runs inspect 01J9000000000000000000000R --data",
		"__complete inspect ", "__complete jobs retry ", "__complete events list --source ", "__complete events list -t ",
		"__complete queues retry orders --id ", "__complete workflow-runs redrive ",
	} {
		args := strings.Split(line, " ")
		for _, more := range [][]string{nil, {"--json"}, {"--url", server}, {"--url", server, "--json"}} {
			all := append(append([]string{}, more...), args...)
			if args[0] == "__complete" { // the other arguments are the typed words
				all = append(append([]string{"__complete"}, more...), args[1:]...)
			}
			_, stdout, stderr := session{terminal: true, env: map[string]string{"NO_COLOR": "1"}}.run(t.Context(), all...)
			if what := obeyed(stdout + stderr); what != "" {
				t.Errorf("gateway %q prints %s:\n%q", all, what, stdout+stderr)
			}
			isJSON := len(more)%2 == 1 && args[0] != "__complete"
			if isJSON && stdout != "" && !json.Valid([]byte(stdout)) {
				t.Errorf("gateway %q prints what is no JSON:\n%s", all, stdout)
			}
			shows := strings.Contains(stdout+stderr, "gnp.exe")
			switch line {
			case "queues list", "jobs retry 01J9000000000000000000000S", "__complete events list --source ":
				continue // these commands show little or none of the text
			}
			if !shows {
				t.Errorf("gateway %q does not show the text:\n%s%s", all, stdout, stderr)
			}
		}
	}
}

// spoil appends a byte that is not UTF-8 to columns.
func spoil(t *testing.T, columns ...string) {
	t.Helper()
	conn, err := sqlite.Open("gateway.db")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range columns {
		if _, err := conn.Batch(t.Context(), store.Stmt{Name: "spoil", SQL: "UPDATE " + c + " || CAST(x'ff' AS TEXT)"}); err != nil {
			t.Fatal(err)
		}
	}
}

// obeyed describes a part of the output that a terminal would obey, hide or misread; "" if
// there is none.
func obeyed(output string) string {
	if !utf8.ValidString(output) {
		return "what is not UTF-8"
	}
	for _, r := range output {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return terminal.Visible(string(r))
		}
	}
	if strings.Contains(output, "\nroot# ") {
		return "a line break"
	}
	return ""
}
