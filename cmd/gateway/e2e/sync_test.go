//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// intakeOnlyConfig has no handlers. Such a gateway writes only accepted events, so a sync
// between a request and its answer belongs to that request.
const intakeOnlyConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
sources: {app: {type: event}}
`

// TestSyncBeforeAnswer: kill -9 keeps the page cache, so a kill cannot show whether the
// gateway syncs. The system calls can: between the arrival of each event and the first byte of
// its 202, the log was written and synced to the disk with success.
func TestSyncBeforeAnswer(t *testing.T) {
	t.Parallel()
	g := newGateway(t, intakeOnlyConfig, nil)
	g.start()
	tr := trace(t, g.process, "-e", "trace=read,recvfrom,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync")
	const requests = 25
	// The last event is not judged: its answer may arrive before the tracer has recorded it.
	for i := range requests + 1 {
		g.send("/events/order.created", fmt.Sprintf(`{"probe":"probe-%04d"}`, i))
	}
	tr.detach()
	calls := tr.calls()
	for i := range requests {
		if why := unsynced(calls, fmt.Sprintf("probe-%04d", i)); why != "" {
			t.Errorf("event %d: %s", i, why)
		}
	}
}

// unsynced names the call that is missing between the arrival of the request with the marker
// and its answer. It returns "" if none is missing.
func unsynced(calls []call, marker string) string {
	arrival := first(calls, func(c call) bool {
		return (c.name == "read" || c.name == "recvfrom") && strings.Contains(c.text, marker)
	})
	if arrival == nil {
		return "its arrival is not in the trace"
	}
	answer := first(calls, func(c call) bool {
		return c.start > arrival.end && c.file == arrival.file && strings.Contains(c.text, "HTTP/1.1 202")
	})
	if answer == nil {
		return "its answer is not in the trace"
	}
	written := first(calls, func(c call) bool {
		return c.start > arrival.end && strings.HasPrefix(c.name, "pwrite") && strings.HasSuffix(c.file, "-wal")
	})
	if written == nil || written.end > answer.start {
		return "nothing was written to the log before the answer"
	}
	synced := first(calls, func(c call) bool {
		return c.start > written.end && c.name == "fdatasync" && strings.HasSuffix(c.file, "-wal")
	})
	switch {
	case synced == nil || synced.end > answer.start:
		return "the log was not synced before the answer"
	case strings.TrimSpace(synced.result) != "0":
		return fmt.Sprintf("answered with 202 although the sync returned %s", synced.result)
	}
	return ""
}

// first returns the first call for which is returns true, by its entry.
func first(calls []call, is func(call) bool) *call {
	var found *call
	for i := range calls {
		if is(calls[i]) && (found == nil || calls[i].start < found.start) {
			found = &calls[i]
		}
	}
	return found
}

func TestUnsynced(t *testing.T) {
	t.Parallel()
	const socket = "TCP:[a->b]"
	read := call{"read", socket, `"probe-1"`, "99", 1, 1}
	pwrite := call{"pwrite64", "/x/gateway.db-wal", "", "4096", 3, 3}
	sync := call{"fdatasync", "/x/gateway.db-wal", "", "0", 5, 7}
	write := call{"write", socket, `"HTTP/1.1 202 Accepted`, "99", 9, 9}
	early, failed, late, elsewhere, costly := write, sync, sync, sync, sync
	early.start, failed.result, late.start, late.end, elsewhere.file = 6, "-1 EIO", 10, 11, "/x/gateway.db"
	costly.name = "fsync"
	tests := []struct {
		name  string
		calls []call
		want  string
	}{
		{"synced", []call{read, pwrite, sync, write}, ""},
		{"answered while it syncs", []call{read, pwrite, sync, early}, "the log was not synced before the answer"},
		{"answered before", []call{read, pwrite, write, late}, "the log was not synced before the answer"},
		{"another file", []call{read, pwrite, elsewhere, write}, "the log was not synced before the answer"},
		{"synced with the times", []call{read, pwrite, costly, write}, "the log was not synced before the answer"},
		{"sync failed", []call{read, pwrite, failed, write}, "answered with 202 although the sync returned -1 EIO"},
		{"nothing written", []call{read, sync, write}, "nothing was written to the log before the answer"},
		{"no answer", []call{read, pwrite, sync}, "its answer is not in the trace"},
		{"no request", []call{pwrite, sync, write}, "its arrival is not in the trace"},
	}
	for _, tt := range tests {
		if got := unsynced(tt.calls, "probe-1"); got != tt.want {
			t.Errorf("%s: unsynced = %q, want %q", tt.name, got, tt.want)
		}
	}
}
