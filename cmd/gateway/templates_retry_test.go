package main

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/config"
)

// TestLaptopsRetrySoon: with every template, the local overlay makes a failed job dead within
// seconds, and no circuit breaker makes other jobs wait for a minute. Without its settings a
// job would take 15 s, or minutes with the templates github and stripe.
func TestLaptopsRetrySoon(t *testing.T) {
	for _, template := range templateNames() {
		dir := t.TempDir()
		if code, _, said := (session{}).run(t.Context(), "init", "--template", template, "--dir", dir); code != 0 {
			t.Fatal(said)
		}
		cfg, err := config.Load(config.Options{FS: hostFS{}, Path: dir + "/" + baseFile, Env: "local", Lookup: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range cfg.SortedHandlers() {
			var total time.Duration
			for attempt := 1; attempt < h.Retry.Max; attempt++ {
				total += h.Retry.Interval.Duration << (attempt - 1)
			}
			if !h.CircuitBreaker.Off {
				t.Errorf("%s: the circuit breaker of %s opens after five failures, want none", template, h.Name)
			}
			if total > 5*time.Second {
				t.Errorf("%s: a job of %s is dead after %v, want within 5 s", template, h.Name, total)
			}
		}
	}
}
