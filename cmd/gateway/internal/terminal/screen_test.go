package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestColours(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		noColor  bool
		env      map[string]string
		want     bool
	}{
		{"terminal", true, false, nil, true},
		{"pipe", false, false, nil, false},
		{"flag", true, true, nil, false},
		{"NO_COLOR", true, false, map[string]string{"NO_COLOR": "1"}, false},
		{"empty NO_COLOR", true, false, map[string]string{"NO_COLOR": ""}, true},
		{"dumb terminal", true, false, map[string]string{"TERM": "dumb"}, false},
	} {
		s := &Screen{Terminal: c.terminal, NoColor: c.noColor, Env: func(name string) string { return c.env[name] }}
		if got := s.Coloured(); got != c.want {
			t.Errorf("%s: Coloured() = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "<1ms",
		time.Millisecond:          "1ms",
		999 * time.Millisecond:    "999ms",
		1234 * time.Millisecond:   "1.23s",
		61_499 * time.Millisecond: "1m1s",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%d) = %q, want %q", d, got, want)
		}
	}
}

// TestIndentedDepth: indentation would make a document of brackets grow with the square of its
// size.
func TestIndentedDepth(t *testing.T) {
	deep := strings.Repeat("[", MaxIndent+1) + strings.Repeat("]", MaxIndent+1)
	if got := Indented([]byte(deep)); string(got) != deep {
		t.Errorf("a document %d deep was spread over %d bytes", MaxIndent+1, len(got))
	}
	if got := depth([]byte(`{"a[[\"[": [{}]}`)); got != 3 {
		t.Errorf("depth = %d, want 3", got)
	}
}

// TestProgress: a progress line appears on a terminal now and then, and is removed at the end.
func TestProgress(t *testing.T) {
	for _, watched := range []bool{false, true} {
		var errs strings.Builder
		now := time.Unix(1727776800, 0)
		s := &Screen{Err: &errs, Watched: watched, Clock: func() time.Time { return now }}
		p := s.Progress()
		for n := range 5 {
			p.Show("%d \x1b", n)
			now = now.Add(progressRest / 2)
		}
		p.Clear()
		p.Clear()
		want := ""
		if watched {
			want = "\r2 \\x1b\x1b[K\r4 \\x1b\x1b[K\r\x1b[K"
		}
		if errs.String() != want {
			t.Errorf("watched %v: %q, want %q", watched, errs.String(), want)
		}
	}
}

// TestReaderGone: a pipe without a reader is recognised. A full pipe and other files are not.
func TestReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if readerGone(w) || readerGone(file) || readerGone(new(strings.Builder)) {
		t.Error("a reader that is there is gone")
	}
	r.Close()
	if !readerGone(w) {
		t.Error("a reader that is gone is there")
	}
}
