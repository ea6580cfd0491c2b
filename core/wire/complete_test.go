package wire

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// TestEachFieldOfAJobTravels: the jobs that TestThereAndBack compares have all fields set.
// Without this test, a new field of core.Job that no record has would go unnoticed: --url would
// show another job than the database.
func TestEachFieldOfAJobTravels(t *testing.T) {
	unsent := []string{"Key", "Lease", "Host"} // secret or not shown; Host is tested by itself
	jobs, seen := rapid.Custom(someJob), map[string]bool{}
	for seed := range 100 {
		job := reflect.ValueOf(jobs.Example(seed))
		for i := range job.NumField() {
			if !job.Field(i).IsZero() {
				seen[job.Type().Field(i).Name] = true
			}
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[core.Job]()) {
		if !seen[field.Name] && !slices.Contains(unsent, field.Name) {
			t.Errorf("core.Job.%s: someJob in decode_test.go does not set it; set it there, and carry it in JobOf (job.go) and Job.Core (decode.go)", field.Name)
		}
	}
}
