// Package event is the one body that both ends of a benchmark run agree on: a
// JSON object that starts with a fixed-width sequence number and the time it was
// sent. The generator overwrites the digits in place, so that a request costs no
// encoding, and the sink reads them back without a JSON parser; both share two
// cores with the system under test.
//
// It imports the standard library only.
package event

import (
	"bytes"
	"time"
)

const (
	seqKey  = `{"seq":`
	timeKey = `,"t":`
	padKey  = `,"pad":"`
	end     = `"}`

	// SeqBase is the number in a body that stands for sequence number 0. A JSON number may not
	// start with a zero, so both numbers are offset or naturally long enough to keep their width.
	SeqBase   = 1_000_000_000
	timeWidth = 19

	seqAt  = len(seqKey)
	timeAt = seqAt + SeqWidth + len(timeKey)

	// SeqWidth is the number of digits of a sequence number in a body.
	SeqWidth = 10
	// MaxSeq is the largest sequence number that keeps the width.
	MaxSeq = 9*SeqBase - 1
	// MinSize is the size in bytes of a body without padding.
	MinSize = timeAt + timeWidth + len(padKey) + len(end)
)

// Body returns a body of the given size in bytes, at least MinSize, that carries
// sequence number 0.
func Body(size int) []byte {
	b := make([]byte, 0, max(size, MinSize))
	b = append(b, seqKey...)
	b = append(b, bytes.Repeat([]byte{'0'}, SeqWidth)...)
	b = append(b, timeKey...)
	b = append(b, bytes.Repeat([]byte{'1'}, timeWidth)...)
	b = append(b, padKey...)
	b = append(b, bytes.Repeat([]byte{'x'}, max(0, size-MinSize))...)
	b = append(b, end...)
	Stamp(b, 0, time.Now().UnixNano())
	return b
}

// Stamp writes a sequence number, 0 to MaxSeq, and a Unix time in nanoseconds
// into a body made by Body.
func Stamp(body []byte, seq int, unixNano int64) {
	StampSeq(body[seqAt:seqAt+SeqWidth], seq)
	digits(body[timeAt:timeAt+timeWidth], unixNano)
}

// StampSeq writes a sequence number into SeqWidth bytes, as Stamp does.
func StampSeq(at []byte, seq int) { digits(at, int64(seq)+SeqBase) }

// Seq reads the sequence number of a body, false if it is none of ours.
func Seq(body []byte) (int, bool) {
	if len(body) < MinSize || string(body[:seqAt]) != seqKey {
		return 0, false
	}
	n := 0
	for _, c := range body[seqAt : seqAt+SeqWidth] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n - SeqBase, n >= SeqBase
}

// digits writes n right-aligned over all of b, with zeros in front.
func digits(b []byte, n int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// epoch is when the process began.
var epoch = time.Now()

// Nanos is the process's monotonic clock in nanoseconds, always above zero. The
// generator and the sink live in one process, so their readings subtract.
func Nanos() int64 { return int64(time.Since(epoch)) + 1 }
