package terminal

import (
	"fmt"
	"time"
)

// Count returns a number with its noun. The plural of the noun ends in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OrDash returns s, or a dash if s is empty: an empty cell of a table would shift the columns
// for programs that split lines at blanks.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Span returns a duration for people, with about three digits.
func Span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Clip shortens visible text to at most this number of characters. A shortened text ends in an
// ellipsis.
func Clip(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
