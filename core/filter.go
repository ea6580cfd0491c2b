package core

import "time"

// Limits of a page of a listing.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// MaxDepth bounds the cost of counting jobs: no count exceeds it.
const MaxDepth = 100_000

// An EventFilter selects events. Zero fields select everything. The maker of an event
// ensures that it is received at most a minute after its id was made. A later event may be
// left out if Since or Until is set.
type EventFilter struct {
	Source, Type string
	DeliveryID   string    // see [Event]; without a source, of any source
	Since, Until time.Time // received at or after Since, before Until
	After        ID        // continue below this id
	Limit        int       // 1 to MaxPage; 0 means DefaultPage
}

// A JobFilter selects jobs. Zero fields select everything.
type JobFilter struct {
	Status  Status
	Lane    Lane
	EventID ID

	// Since and Until select jobs that were made at or after Since, before Until, by the
	// time in their ids.
	Since, Until time.Time

	After ID  // continue below this id
	Limit int // 1 to MaxPage; 0 means DefaultPage
}

// A Page is one page of a listing, newest first.
type Page[T any] struct {
	Items []T
	More  bool // whether there are older ones
}
