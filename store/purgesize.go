package store

import "time"

// A commitSize is how many rows a Purge deletes in one commit: parts of jobs or of runs, or
// events. It grows where a commit takes long however small it is, such as on a slow disk, and
// shrinks again to least. 0 means no bound.
type commitSize struct{ rows, least, most int }

// The numbers by which the size of a commit follows.
const (
	slowRow   = 200 * time.Microsecond // per row; a row alone takes a fraction of this
	maxGrowth = 8                      // of a size

	onTime  = 2 * time.Minute  // passes are a minute apart
	tooLate = 10 * time.Minute // commits are as large as they get
)

// commitSizeOf returns the size of the first commit of a Purge whose oldest row expired so long
// ago. usual is the size of commits on time.
//
// A commit of more rows costs less for each of them, since rows that expire together are stored
// together: on SQLite, 48 rows write twice as many pages as 6. But accepts wait for it longer. The
// size depends only on how late the Purge is, so every process and function has the same. As long
// as more comes in than a Purge deletes, the oldest rows get older, and the Purge faster, until it
// deletes as much as comes in. From then on the database grows no further.
func commitSizeOf(usual int, late time.Duration) commitSize {
	part := min(max(float64(late-onTime)/float64(tooLate-onTime), 0), 1)
	least := usual + int(part*float64((maxGrowth-1)*usual))
	return commitSize{least, least, maxGrowth * usual}
}

// next returns the size of the commit after one of so many rows.
func (b commitSize) next(took time.Duration, rows int) commitSize {
	switch {
	case b.rows == 0:
	case took > slowRow*time.Duration(rows):
		b.rows = min(2*b.rows, b.most)
	case took < slowRow*time.Duration(rows)/2:
		b.rows = max(b.rows/2, b.least)
	}
	return b
}

// The numbers of pauseAfter.
const (
	pauseFactor = 10
	maxPause    = 5 * time.Millisecond
)

// pauseAfter returns the pause after a commit. It is bounded: where commits wait in line with
// those of other writers, took contains the waiting, and pauses of ten times that would never let
// a Purge finish.
func pauseAfter(took time.Duration) time.Duration { return min(pauseFactor*took, maxPause) }
