package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A server waits for a database that cannot be reached. It does not wait after an error that
// does not pass.
func TestAwait(t *testing.T) {
	away := core.Refuse(core.Unavailable, "away")
	refused := core.Refuse(core.Invalid, "wrong password")
	for _, c := range []struct {
		name   string
		errs   []error // of the first tries; after them it opens
		most   time.Duration
		stopAt time.Duration // 0 for never

		err    string
		tries  int
		waited time.Duration
	}{
		{"there", nil, time.Minute, 0, "", 1, 0},
		{"soon there", []error{away, away, away}, time.Minute, 0, "", 4, 7 * time.Second},
		{"pauses are bounded", []error{away, away, away, away, away, away, away}, time.Hour, 0, "", 8, 60 * time.Second},
		{"refused", []error{refused}, time.Minute, 0, "wrong password", 1, 0},
		{"there, then refused", []error{away, refused}, time.Minute, 0, "wrong password", 2, time.Second},
		{"not to wait", []error{away}, 0, 0, "away", 1, 0},
		{"away for good", []error{away, away, away, away, away}, 10 * time.Second, 0,
			"away; it stayed away for 10s, which GATEWAY_DATABASE_WAIT bounds", 5, 10 * time.Second},
		{"told to stop", []error{away, away, away, away, away}, time.Minute, 5 * time.Second, "context canceled", 3, 5 * time.Second},
		{"a defect", []error{errors.New("defect")}, time.Minute, 0, "defect", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stopAt > 0 {
					time.AfterFunc(c.stopAt, cancel)
				}
				var lines bytes.Buffer
				a, began, tries := &app{system: system{clock: time.Now}}, time.Now(), 0
				_, err := a.await(ctx, c.most, slog.New(slog.NewTextHandler(&lines, nil)), func() (core.Store, error) {
					if tries++; tries <= len(c.errs) {
						return nil, c.errs[tries-1]
					}
					return nil, nil
				})
				said := ""
				if err != nil {
					said = err.Error()
				}
				if waited := time.Since(began); said != c.err || tries != c.tries || waited != c.waited {
					t.Errorf("await = %q after %d tries and %s, want %q, %d, %s", said, tries, waited, c.err, c.tries, c.waited)
				}
				if told := strings.Count(lines.String(), "waiting for the database"); c.err == "" && told != len(c.errs) {
					t.Errorf("%d lines tell of waiting, want one for each of %d tries:\n%s", told, len(c.errs), lines.String())
				}
			})
		})
	}
}
