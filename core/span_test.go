package core

import (
	"strings"
	"testing"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseSpan(t *testing.T) {
	for in, want := range map[string]string{
		traceparent:                                  traceparent,
		traceparent[:53] + "00":                      traceparent[:53] + "00",
		traceparent[:53] + "ff":                      traceparent[:53] + "ff",
		"cc" + traceparent[2:]:                       traceparent,
		"cc" + traceparent[2:] + "-what-comes-later": traceparent,

		"":                                        "",
		traceparent[:54]:                          "",
		traceparent + "-00":                       "",
		"cc" + traceparent[2:] + ".no":            "",
		"cc" + traceparent[2:] + "-\xff":          "",
		"ff" + traceparent[2:]:                    "",
		"0x" + traceparent[2:]:                    "",
		strings.ToUpper(traceparent):              "",
		traceparent[:53] + "0g":                   "",
		strings.Replace(traceparent, "-", "_", 1): "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01": "",
		"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01": "",
	} {
		span, ok := ParseSpan(in)
		if ok != (want != "") || ok && span.String() != want || !ok && span != (Span{}) {
			t.Errorf("ParseSpan(%q) = %v, %v, want %q", in, span, ok, want)
		}
	}
}

// The derived ids must never change: gateways of two versions may share a database, and one
// of them reports the attempt that the other made.
func TestSpansBelow(t *testing.T) {
	root, _ := ParseSpan(traceparent)
	job := Job{ID: "01HZY8Q4000000000000000JOB", Lease: "01HZY8Q40000000000000LEASE"}
	for name, c := range map[string]struct {
		span Span
		want string
	}{
		"attempt":          {root.Attempt(job), "00caa4b15f38f737"},
		"of another lease": {root.Attempt(Job{ID: job.ID, Lease: "01HZY8Q40000000000000OTHER"}), "8b006db122806dd2"},
		"of another job":   {root.Attempt(Job{ID: "01HZY8Q4000000000000OTHER0", Lease: job.Lease}), "ac4f1b719797a0d9"},
		"step":             {root.StepAttempt(job.ID, 1), "4db9e24bc2e8cd3b"},
		"its retry":        {root.StepAttempt(job.ID, 2), "12a8136fda29fcc8"},
		"run":              {root.Run(job.ID, 1), "0e1af77e315008f0"},
		"redriven":         {root.Run(job.ID, 2), "3c5a7bff938ede13"},
	} {
		if got, want := c.span.String(), traceparent[:36]+c.want+"-01"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSampled(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "fe": false} {
		if span, _ := ParseSpan(traceparent[:53] + flags); span.Sampled() != want {
			t.Errorf("flags %s: sampled %v, want %v", flags, span.Sampled(), want)
		}
	}
}

func BenchmarkAttemptSpan(b *testing.B) {
	b.ReportAllocs()
	job := Job{ID: "01HZY8Q4000000000000000JOB", Lease: "01HZY8Q40000000000000LEASE"}
	for b.Loop() {
		span, _ := ParseSpan(traceparent)
		_ = span.Attempt(job).String()
	}
}
