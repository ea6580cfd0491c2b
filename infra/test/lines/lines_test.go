package lines

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// history makes a history from words such as "+a" (stored), "a(" (begun), "a)" (completed), "a~"
// (failed), "a!" (dead), "a>" (skipped) and "a<" (retried), all of one key. A word may name another
// key: "k:a(".
func history(words string) (all []Entry) {
	attempts := map[string]int{}
	for _, w := range strings.Fields(words) {
		e := Entry{Key: "k"}
		if key, rest, found := strings.Cut(w, ":"); found {
			e.Key, w = key, rest
		}
		if name, found := strings.CutPrefix(w, "+"); found {
			e.Kind, e.Job = Stored, name
			all = append(all, e)
			continue
		}
		e.Job = w[:len(w)-1]
		switch w[len(w)-1] {
		case '(':
			e.Kind = Begun
			attempts[e.Key+e.Job]++
		case ')':
			e.Kind, e.Outcome = Ended, Completed
		case '~':
			e.Kind, e.Outcome = Ended, Failed
		case '!':
			e.Kind, e.Outcome = Ended, Dead
		case '>':
			e.Kind = Skipped
		case '<':
			e.Kind = Retried
		}
		e.Attempt = attempts[e.Key+e.Job]
		all = append(all, e)
	}
	return all
}

var (
	strict   = Rules{Limit: 1}
	stopping = Rules{Limit: 1, StopOnDead: true}
	three    = Rules{Limit: 3}
	crashing = Rules{Limit: 1, Repeats: true}
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules Rules
		words string
		want  []string // the classes of the problems
	}{
		{"nothing", strict, "", nil},
		{"one after the other", strict, "+a +b a( a) b( b)", nil},
		{"two keys at the same time", strict, "+a 2:+b a( 2:b( a) 2:b)", nil},
		{"a retry keeps its place", strict, "+a +b a( a~ a( a) b( b)", nil},
		{"a job that is recorded late", strict, "+a a( a) b( +b b)", nil},
		{"the line goes on after a dead job", strict, "+a +b a( a! b( b)", nil},
		{"a retried job goes to the end", strict, "+a +b a( a! a< b( b) a( a)", nil},
		{"a dead job stops its line", stopping, "+a +b +c a( a) b( b!", nil},
		{"a skipped job", stopping, "+a +b a( a! a> b( b)", nil},
		{"a retried job goes on in its place", stopping, "+a +b a( a! a< a( a) b( b)", nil},
		{"a skipped job that is retried later", stopping, "+a +b a( a! a> a< b( b) a( a)", nil},
		{"three at the same time", three, "+a +b +c +d c( b( a( b) d( d) a) c)", nil},
		{"a job in backoff gives its slot away", three, "+a +b +c +d a( a~ d( b( c( b) c) d) a( a)", nil},
		{"a success that a crash lost", crashing, "+a +b a( a) a( a) b( b)", nil},
		{"a death that a crash lost", crashing, "+a +b a( a! a( a) b( b)", nil},

		{"overlap", strict, "+a +b a( b( a) b)", []string{"overlap", "inversion"}},
		{"overlap of one job", strict, "+a a( a( a)", []string{"overlap"}},
		{"four at the same time", three, "+a +b +c +d a( b( c( d( a) b) c) d)", []string{"overlap"}},
		{"inversion", strict, "+a +b b( b) a( a)", []string{"inversion"}},
		{"inversion during a backoff", strict, "+a +b a( a~ b( b) a( a)", []string{"inversion"}},
		{"inversion at a higher limit", three, "+a +b +c +d d( d) a( a) b( b) c( c)", []string{"inversion"}},
		{"a retried job before others", strict, "+a +b a( a! a< a( a) b( b)", []string{"inversion"}},
		{"a lost job", strict, "+a +b a( a! b( b) +c +d d( d)", []string{"inversion", "lost"}},
		{"a lost job at a higher limit", three, "+a +b +c a( b( c( a) c)", []string{"lost"}},
		{"a retry that never came", strict, "+a a( a~", []string{"lost"}},
		{"a job twice after its success", strict, "+a a( a) a( a)", []string{"repeated"}},
		{"a dead job again", strict, "+a a( a! a( a)", []string{"repeated"}},
		{"a repeat after the next job", crashing, "+a +b a( a) b( b) a( a)", []string{"repeated"}},
		{"a dead job after the next job", crashing, "+a +b a( a! b( b) a( a)", []string{"repeated"}},
		{"a stuck line", strict, "+a +b +c a( a)", []string{"stuck"}},
		{"a line stuck at its start", three, "+a +b 2:+a 2:a( 2:a)", []string{"stuck"}},
		{"a line stuck after a skip", stopping, "+a +b a( a! a>", []string{"stuck"}},
		{"a line that does not stop", stopping, "+a +b a( a! b( b)", []string{"unstopped"}},
		{"a job that was not stored", strict, "a( a)", []string{"unknown", "unknown"}},
		{"a job of another key", strict, "+a 2:+b 2:a(", []string{"unknown", "stuck", "stuck"}},
		{"an end without a beginning", strict, "+a a) a( a)", []string{"unknown"}},
		{"a job stored twice", strict, "+a +a a( a)", []string{"unknown"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			problems := Check(tt.rules, history(tt.words))
			var got []string
			for _, p := range problems {
				class, _, _ := strings.Cut(p, ":")
				got = append(got, class)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %v", tt.words, problems, tt.want)
			}
		})
	}
}

// TestCheckIsFast: a history of a line with many jobs is checked in a time that a test can spend.
func TestCheckIsFast(t *testing.T) {
	var words strings.Builder
	for i := range 3000 {
		w := strconv.Itoa(i)
		words.WriteString("+" + w + " " + w + "( " + w + ") ")
	}
	if problems := Check(strict, history(words.String())); len(problems) > 0 {
		t.Errorf("%q", problems[0])
	}
}
