package server

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := Start(t.Context(), o)
	if errors.Is(err, ErrLeftOut) {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop() = %v", err)
		}
		if _, err := os.Stat(s.folder); err == nil {
			t.Errorf("%s is left", s.folder)
		}
	})
	return s
}

func TestSyncsOfOneMS(t *testing.T) {
	s := start(t, Options{Driver: Postgres, Medium: OneMS})
	rate, err := s.SyncRate(t.Context(), 100*time.Millisecond)
	if err != nil || rate <= 0 || rate > 1000 {
		t.Errorf("SyncRate() = %v, %v, want at most 1000", rate, err)
	}
	if s.shim.env()[0] != "LD_PRELOAD="+s.shim.library {
		t.Errorf("env() = %q", s.shim.env())
	}
	used, err := s.CPU()
	for n := 0; used == 0 && err == nil && n < 100; n++ { // it is counted in ticks of 10 ms
		d, newErr := s.New()
		if newErr != nil {
			t.Fatal(newErr)
		}
		err = d.Drop()
		if err == nil {
			used, err = s.CPU()
		}
	}
	if err != nil || used <= 0 {
		t.Errorf("CPU() = %v, %v, want some time", used, err)
	}
	if FindPgbench() == "" {
		return
	}
	if rate, err := s.Pgbench(t.Context(), 4, 20, 100); err != nil || rate <= 0 || rate > 4*1000 {
		t.Errorf("Pgbench(4) = %v, %v: four clients wait a millisecond for each commit", rate, err)
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	for _, driver := range []string{SQLite, MySQL, Hosted} {
		s, err := Start(t.Context(), Options{Driver: driver, Medium: OneMS})
		if !errors.Is(err, ErrLeftOut) {
			t.Errorf("Start(%s on 1 ms) = %v, %v, want that it is left out", driver, s, err)
		}
	}
}

func TestSlowSyncsNeedACompiler(t *testing.T) {
	if _, err := os.Stat(memory); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Setenv("PATH", "")
	_, err := Start(t.Context(), Options{Driver: Postgres, Medium: OneMS})
	if !errors.Is(err, ErrLeftOut) || !strings.Contains(err.Error(), "gcc is missing") {
		t.Errorf("Start() = %v, want that gcc is missing", err)
	}
}

func TestFreshDatabasesOfSQLite(t *testing.T) {
	s := start(t, Options{Driver: SQLite, Medium: Disk})
	a, err := s.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.exec("CREATE TABLE events (id); CREATE TABLE jobs (event_id); INSERT INTO events VALUES (1), (2); INSERT INTO jobs VALUES (1), (1), (3)"); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Stored(context.Background()); n != 1 || err != nil {
		t.Errorf("Stored() = %d, %v, want 1", n, err)
	}
	b, err := s.New()
	if err != nil || a.URL == b.URL {
		t.Errorf("New() = %+v, %v after %+v", b, err, a)
	}
	if cpu, err := s.CPU(); cpu != 0 || err != nil {
		t.Errorf("CPU() = %v, %v, want 0", cpu, err)
	}
}
