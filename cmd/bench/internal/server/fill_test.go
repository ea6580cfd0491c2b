package server

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// TestFilledID: ids sort like times, and one in SQL is the same.
func TestFilledID(t *testing.T) {
	// The example of https://github.com/ulid/spec.
	if id := FilledID(time.UnixMilli(1469918176385)); id != "01ARYZ6S410000000000000000" {
		t.Errorf("FilledID = %s", id)
	}
	d := &Database{Driver: SQLite, URL: filepath.Join(t.TempDir(), "ids.db")}
	text := fillText("SELECT count(*) AS n FROM (SELECT {id 3} AS id FROM (SELECT 1469918176385 AS at, 42 AS i)) AS made WHERE id = '01ARYZ6S410000000000000423'", 1, time.Now(), FilledSpan)
	if n, err := d.Count(context.Background(), text); n != 1 || err != nil {
		t.Errorf("the id in SQL is another one: %v", err)
	}
}
