package group

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace: a pace follows the shortest commits of the last 10 to 20 seconds.
func TestPace(t *testing.T) {
	const fast, slow = overlapFrom - 1, overlapFrom
	for _, c := range []struct {
		name    string
		commits []time.Duration // alternating: how long a commit took, and the time after it
		want    bool
	}{
		{"no commit is known", nil, true},
		{"a slow one", []time.Duration{slow, 0}, true},
		{"a fast one", []time.Duration{fast, 0}, false},
		{"a fast one among slow ones", []time.Duration{slow, 1, fast, 1, time.Hour, 0}, false},
		{"slow ones after a fast one, at the end of a window", []time.Duration{fast, paceWindow - 1, slow, 0}, false},
		{"slow ones in the window after a fast one", []time.Duration{fast, paceWindow, slow, paceWindow - 1, slow, 0}, false},
		{"slow ones in the second window after a fast one", []time.Duration{fast, paceWindow, slow, paceWindow, slow, 0}, true},
		{"a slow one long after a fast one", []time.Duration{fast, 2 * paceWindow, slow, 0}, true},
		{"a fast one after slow ones", []time.Duration{slow, paceWindow, slow, paceWindow, fast, 0}, false},
		{"a slow one after the clock was set back", []time.Duration{fast, -time.Hour, slow, 0}, true},
	} {
		p, now := newPace(), time.Now()
		for i := 0; i < len(c.commits); i += 2 {
			p.note(c.commits[i], now)
			now = now.Add(c.commits[i+1])
		}
		got := false
		select {
		case <-p.mayOverlap():
			got = true
		default:
		}
		if got != c.want {
			t.Errorf("%s: commits may overlap: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCommittersOverlap: the second of two committers writes while commits are slow, and not
// while they are fast. Failed commits say nothing: a lost connection fails at once.
func TestCommittersOverlap(t *testing.T) {
	for _, c := range []struct {
		name    string
		takes   time.Duration
		failing bool
		want    int
	}{
		{"fast", 100 * time.Microsecond, false, 1},
		{"slow", 5 * time.Millisecond, false, 2},
		{"failing fast", 100 * time.Microsecond, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var writing, most int
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					writing += n
					most = max(most, writing)
				}
				l := NewLine(2, func([]*Batch) error {
					count(1)
					defer count(-1)
					<-time.After(c.takes)
					if c.failing {
						return errors.New("refused")
					}
					return nil
				})
				defer l.Close()
				// The line learns how long a commit takes. A committer that has begun to wait for
				// a batch still gets one, so there are two.
				for range 2 {
					l.Do(context.Background(), stmt("alone"))
					synctest.Wait()
				}
				most = 0
				for range 3 {
					done := make(chan struct{})
					go func() { l.Do(context.Background(), stmt("a")); close(done) }()
					synctest.Wait()
					l.Do(context.Background(), stmt("b"))
					<-done
				}
				if most != c.want {
					t.Errorf("%d commits at the same time, want %d", most, c.want)
				}
			})
		})
	}
}

// TestStalledCommit: a commit that takes long, though the others are fast, keeps no other batch.
// When it ends, there is one commit at a time again.
func TestStalledCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := NewLine(2, func(batches []*Batch) error {
			if batches[0].Stmts[0].Name == "stalled" {
				<-release
			}
			return nil
		})
		defer l.Close()
		for range 2 {
			l.Do(context.Background(), stmt("alone"))
			synctest.Wait()
		}
		done := make(chan struct{})
		go func() { l.Do(context.Background(), stmt("stalled")); close(done) }()
		synctest.Wait()
		began := time.Now()
		for range 3 {
			if _, err := l.Do(context.Background(), stmt("behind it")); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited != stalledAfter {
			t.Errorf("three batches behind a stalled commit waited for %v, want %v", waited, stalledAfter)
		}
		close(release)
		<-done
		l.Do(context.Background(), stmt("alone"))
		select {
		case <-l.pace.mayOverlap():
			t.Error("commits may overlap after the stalled one has ended")
		default:
		}
	})
}
