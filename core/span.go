package core

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// A Span is one operation of a trace, as other systems name it:
// https://www.w3.org/TR/trace-context/. The zero Span is none.
//
// An event keeps the span of its intake among its headers. The spans of its deliveries,
// steps and runs are hashes of that span and of ids that are stored anyway. So the process
// that makes a call and the process that reports it later name the same span, without
// exchanging it.
type Span struct {
	Trace [16]byte
	ID    [8]byte
	Flags byte // see Sampled; unknown flags are passed on
}

// The headers of an event that hold its span, and the data that others added to the trace.
const (
	Traceparent = "traceparent"
	Tracestate  = "tracestate"
)

// sizeOfTraceparent is the length of a traceparent of version 00, in bytes.
const sizeOfTraceparent = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// ParseSpan reads a traceparent, and reports whether it is valid. A traceparent of an
// unknown version may have more fields, which ParseSpan ignores.
func ParseSpan(s string) (Span, bool) {
	if len(s) < sizeOfTraceparent || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Span{}, false
	}
	version, rest := s[:2], s[sizeOfTraceparent:]
	var span Span
	var flags, known [1]byte
	ok := lowerHex(known[:], version) && lowerHex(span.Trace[:], s[3:35]) &&
		lowerHex(span.ID[:], s[36:52]) && lowerHex(flags[:], s[53:sizeOfTraceparent])
	span.Flags = flags[0]
	switch {
	case !ok, version == "ff", !span.valid():
		return Span{}, false
	case rest != "" && (version == "00" || rest[0] != '-' || strings.ContainsFunc(rest, unprintable)):
		return Span{}, false
	}
	return span, true
}

// lowerHex decodes a text of exactly twice the length of into. It accepts lower case only.
func lowerHex(into []byte, s string) bool {
	if strings.Trim(s, "0123456789abcdef") != "" {
		return false
	}
	_, err := hex.Decode(into, []byte(s))
	return err == nil
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

func (s Span) valid() bool { return s.Trace != [16]byte{} && s.ID != [8]byte{} }

// Sampled reports whether the caller keeps the trace.
func (s Span) Sampled() bool { return s.Flags&1 != 0 }

// String returns the span as a traceparent of version 00.
func (s Span) String() string {
	b := make([]byte, 0, sizeOfTraceparent)
	b = append(b, "00-"...)
	b = append(hex.AppendEncode(b, s.Trace[:]), '-')
	b = append(hex.AppendEncode(b, s.ID[:]), '-')
	return string(hex.AppendEncode(b, []byte{s.Flags}))
}

// Attempt returns the span of the attempt for which a job was taken. The job's event came
// in with span s. The lease distinguishes attempts that have the same number, as they do
// after an operator brought the job back.
func (s Span) Attempt(j Job) Span { return s.below("attempt", string(j.ID), string(j.Lease)) }

// StepAttempt returns the span of an attempt of a step, by its number, from 1.
func (s Span) StepAttempt(step ID, number int) Span {
	return s.below("step", string(step), strconv.Itoa(number))
}

// Run returns the span of a workflow run in an epoch.
func (s Span) Run(run ID, epoch int) Span {
	return s.below("run", string(run), strconv.Itoa(epoch))
}

// below returns a span of the same trace whose id is a hash of words. No word may contain a
// blank.
func (s Span) below(words ...string) Span {
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	copy(s.ID[:], sum[:])
	if s.ID == [8]byte{} {
		s.ID[0] = 1 // zeros are no id
	}
	return s
}
