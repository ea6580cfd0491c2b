package core

import (
	"crypto/rand"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// An ID is a ULID in its canonical form: 26 upper-case characters whose order is
// the order of creation, to the millisecond everywhere and exactly within one
// process. See https://github.com/ulid/spec.
type ID string

// ParseID reads an id as callers write it. Lower case is accepted.
func ParseID(s string) (ID, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil {
		return "", Refuse(Invalid, "%q is not an id: 26 characters, 0-9 and A-Z without I, L, O, U", clip(s, 40))
	}
	return ID(u.String()), nil
}

// Time is when the id was made, in milliseconds precision; zero if it is not an id.
func (id ID) Time() time.Time {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time()).UTC()
}

// FirstID is the lowest id that can be made at a time: every id made before it is
// less. A time before 1970 is taken for 1970.
func FirstID(t time.Time) ID {
	var u ulid.ULID
	_ = u.SetTime(uint64(max(0, t.UnixMilli()))) // fails after the year 10889
	return ID(u.String())
}

// Next is the lowest id above this one; itself if it is the highest, or not an id.
func (id ID) Next() ID {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return id
	}
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			return ID(u.String())
		}
	}
	return id
}

// IDs makes ids that only ever grow, also when the clock steps back. The zero
// value is not usable; it is safe for concurrent use.
type IDs struct {
	mu      sync.Mutex
	clock   Clock
	last    uint64
	entropy *ulid.MonotonicEntropy
}

// NewIDs makes a source of ids that reads the time from clock.
func NewIDs(clock Clock) *IDs { return newIDs(clock, rand.Reader) }

func newIDs(clock Clock, random io.Reader) *IDs {
	return &IDs{clock: clock, entropy: ulid.Monotonic(random, 0)}
}

// Next makes an id. It panics only if the system has no randomness left to give,
// which Go's crypto/rand treats as fatal too.
func (s *IDs) Next() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, ulid.Timestamp(s.clock()))
	u, err := ulid.New(s.last, s.entropy)
	if err == ulid.ErrMonotonicOverflow { // 2^80 ids in one millisecond: borrow the next
		s.last++
		u, err = ulid.New(s.last, s.entropy)
	}
	if err != nil {
		panic("core: no randomness for an id: " + err.Error())
	}
	return ID(u.String())
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
