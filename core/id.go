package core

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// An ID is a ULID in its canonical form: 26 upper-case characters. The order of ids is the
// order of creation, exactly within one process and to the millisecond across processes.
// See https://github.com/ulid/spec.
type ID string

// ParseID reads an id as callers write it. It accepts lower case. The error is a [Refusal]
// of kind [Invalid].
func ParseID(s string) (ID, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil {
		return "", Refuse(Invalid, "%q is not an id: 26 characters, 0-9 and A-Z without I, L, O, U", clip(s, 40))
	}
	return ID(u.String()), nil
}

// Time returns when the id was made, in milliseconds precision, or the zero time if it is
// not an id.
func (id ID) Time() time.Time {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time()).UTC()
}

// FirstID returns the lowest id that can be made at a time: every id made before that time
// is less. For a time before 1970 it returns the first id of 1970.
func FirstID(t time.Time) ID {
	var u ulid.ULID
	_ = u.SetTime(uint64(max(0, t.UnixMilli()))) // fails after the year 10889
	return ID(u.String())
}

// Next returns the lowest id above this one. It returns the id itself if it is the highest
// one, or not an id.
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

// IDs makes ids in ascending order, also when the clock steps back. The zero value is not
// usable. IDs is safe for concurrent use.
type IDs struct {
	mu     sync.Mutex
	clock  Clock
	random io.Reader
	last   uint64 // milliseconds of the newest id
	high   uint16 // and its 80 bits behind the time
	low    uint64
}

// NewIDs makes a source of ids that reads the time from clock.
func NewIDs(clock Clock) *IDs { return newIDs(clock, bufio.NewReaderSize(rand.Reader, 512)) }

func newIDs(clock Clock, random io.Reader) *IDs { return &IDs{clock: clock, random: random} }

// Next makes an id. It panics only if the system has no randomness left, which Go's
// crypto/rand treats as fatal too.
func (s *IDs) Next() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grow(1)
	return ID(s.newest().String())
}

// Block makes a block of ids. No other call returns an id of it.
func (s *IDs) Block() Block {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grow(BlockSize)
	s.low &^= BlockSize - 1
	b := Block{s.newest()}
	s.low |= BlockSize - 1
	return b
}

// grow moves on to an id above the newest one. The distance is random, up to 2^32 steps, so
// that ids cannot be guessed. In a new millisecond it begins anywhere in the lower half.
func (s *IDs) grow(step uint64) {
	var bits [10]byte
	if now := ulid.Timestamp(s.clock()); now > s.last {
		s.last = now
		s.begin(bits[:])
		return
	}
	s.read(bits[:4])
	low := s.low + step*(1+uint64(binary.BigEndian.Uint32(bits[:])))
	if low < s.low {
		if s.high++; s.high == 0 { // this millisecond has no more ids: borrow the next
			s.last++
			s.begin(bits[:])
			return
		}
	}
	s.low = low
}

func (s *IDs) begin(bits []byte) {
	s.read(bits)
	s.high, s.low = binary.BigEndian.Uint16(bits)&(1<<15-1), binary.BigEndian.Uint64(bits[2:])
}

func (s *IDs) read(bits []byte) {
	if _, err := io.ReadFull(s.random, bits); err != nil {
		panic("core: no randomness for an id: " + err.Error())
	}
}

func (s *IDs) newest() (u ulid.ULID) {
	_ = u.SetTime(s.last) // fails after the year 10889
	binary.BigEndian.PutUint16(u[6:], s.high)
	binary.BigEndian.PutUint64(u[8:], s.low)
	return u
}

// BlockSize is how many ids a Block has.
const BlockSize = 1 << 24

// A Block is BlockSize consecutive ids. All ids that belong to one request are of one
// block, each at a place that its purpose determines. So a request that is repeated with
// its block makes the same ids, and storing them again stores nothing twice.
type Block struct{ first ulid.ULID }

// BlockOf returns the block of an id, and the id's place in it. The id must be one that
// [ParseID] returns.
func BlockOf(id ID) (b Block, place uint32) {
	b.first, _ = ulid.ParseStrict(string(id))
	last := binary.BigEndian.Uint32(b.first[12:])
	place = last % BlockSize
	binary.BigEndian.PutUint32(b.first[12:], last-place)
	return b, place
}

// At returns the id at a place. The place must be below BlockSize.
func (b Block) At(place uint32) ID {
	binary.BigEndian.PutUint32(b.first[12:], binary.BigEndian.Uint32(b.first[12:])|place%BlockSize)
	return ID(b.first.String())
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
