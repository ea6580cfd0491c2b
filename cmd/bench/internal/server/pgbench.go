package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The tables are the same as those of the reference pipeline. Ids come from a sequence.
// Each client has a part of it, in the width of the pipeline's ids.
const (
	pgbenchSchema = `
CREATE TABLE events (id text COLLATE "C" PRIMARY KEY, source text NOT NULL, type text NOT NULL, payload text NOT NULL, created_at bigint NOT NULL);
CREATE TABLE jobs (id text COLLATE "C" PRIMARY KEY, event_id text COLLATE "C" NOT NULL, attempt bigint NOT NULL, due_at bigint);
CREATE INDEX jobs_due ON jobs (due_at, id) WHERE due_at IS NOT NULL;
CREATE SEQUENCE ids CACHE 1000`
	pgbenchScript = `WITH e AS (INSERT INTO events (id, source, type, payload, created_at)
  VALUES (lpad(nextval('ids')::text, 26, '0'), 'bench', 'order.created', :payload, 1700000000000) RETURNING id)
INSERT INTO jobs (id, event_id, attempt, due_at) SELECT id, id, 0, 1700000000000 FROM e;
`
)

// FindPgbench returns the path of PostgreSQL's pgbench, empty if it is not there.
func FindPgbench() string {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// tps is the line of pgbench's output with its result.
var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// Pgbench makes clients insert events with their jobs, both in one prepared statement,
// about transactions times in all, into a database of its own. It returns how many there
// were a second. It shows the speed of the server for clients without other work and
// without HTTP.
func (s *Server) Pgbench(ctx context.Context, clients, transactions, payload int) (rate float64, err error) {
	d, err := s.New()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Drop()) }()
	if err := d.exec(pgbenchSchema); err != nil {
		return 0, err
	}
	script := filepath.Join(s.folder, "pgbench.sql")
	if err := os.WriteFile(script, []byte(pgbenchScript), 0o600); err != nil {
		return 0, err
	}
	// No vacuum before the run (-n), prepared statements as in the systems, and at most two
	// threads, for the two cores of the machine on which the aims were set.
	args := []string{
		"-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(2, clients)), "-t", strconv.Itoa(max(1, transactions/clients)),
		"-D", "payload=" + strings.Repeat("x", payload), "-f", script, d.URL,
	}
	out, err := exec.CommandContext(ctx, FindPgbench(), args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	m := tps.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pgbench did not say how many transactions a second there were:\n%s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
