package main

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// lookLines are the command lines of a transcript that change nothing.
var lookLines = regexp.MustCompile(`(?m)^(?:exec|exits \d) gateway ((?:events list|jobs list|lines (?:list|inspect)|inspect|queues (?:list|inspect|peek|dlq)|workflow-runs (?:list|inspect))\b[^'$\n]*)$`)

// untold matches lines that a server's answer cannot fill, or fills better.
var untold = regexp.MustCompile(`(?m)^(filter|key|max attempts|visible since|content type|source|received|deadline) .*\n`)

// TestServerSaysTheSame runs the read-only commands of the transcripts twice: on the database,
// and on a server with the same database.
func TestServerSaysTheSame(t *testing.T) {
	for script, least := range map[string]int{"events": 5, "jobs": 5, "lines": 5, "inspect": 8, "queues": 15, "workflow_runs": 10} {
		t.Run(script, func(t *testing.T) {
			text, err := os.ReadFile("testdata/script/" + script + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			t.Chdir(dir)
			archive := txtar.Parse(text)
			server := beside(t, dir, archive)
			lines := lookLines.FindAllStringSubmatch(string(archive.Comment), -1)
			if len(lines) < least {
				t.Errorf("%d looks, want %d at least", len(lines), least)
			}
			for _, line := range lines {
				if strings.Contains(line[1], " -c ") || strings.Contains(line[1], " --env ") {
					continue // a server has one configuration
				}
				sameAnswers(t, server, line[1])
			}
		})
	}
}

// beside serves the seeded database of a transcript. No worker runs.
func beside(t *testing.T, dir string, archive *txtar.Archive) (url string) {
	t.Helper()
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
		if f.Name == "seed.json" {
			defer func() {
				if err := seedDatabase(dir, filepath.Join(dir, "gateway.db"), string(f.Data)); err != nil {
					t.Fatal(err)
				}
			}()
		}
	}
	conn, err := sqlite.Open(filepath.Join(dir, "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{FS: hostFS{}, Path: baseFile, Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(cfg, gateway.Deps{Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func sameAnswers(t *testing.T, server, line string) {
	t.Helper()
	args := strings.Fields(line)
	code, stdout, stderr := session{}.run(t.Context(), args...)
	code2, stdout2, stderr2 := session{}.run(t.Context(), append(args, "--url", server)...)
	stderr2 = strings.ReplaceAll(stderr2, " --url "+server, "")
	if code != code2 || stderr != stderr2 {
		t.Errorf("%s: exit code %d, stderr %q; with --url %d, %q", line, code, stderr, code2, stderr2)
	}
	if diff := cmp.Diff(shownByAll(stdout), shownByAll(stdout2)); diff != "" {
		t.Errorf("%s (-here +with --url):\n%s", line, diff)
	}
}

// branches matches the counts of succeeded branches and items, which a server does not return.
var branches = regexp.MustCompile(`((?:parallel|map) +\w+ +)(\d+/\d+|-  ) `)

func shownByAll(output string) string {
	return branches.ReplaceAllString(untold.ReplaceAllString(output, ""), "$1 ")
}
