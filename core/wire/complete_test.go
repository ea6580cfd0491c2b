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
	for _, field := range unset[core.Job](someJob, unsent) {
		t.Errorf("core.Job.%s: someJob in decode_test.go does not set it; set it there, and carry it in JobOf (job.go) and Job.Core (decode.go)", field)
	}
}

// TestEachFieldOfAnEventTravels: the same for the events that TestEventsThereAndBack compares. An
// export and --url would lack the field.
func TestEachFieldOfAnEventTravels(t *testing.T) {
	for _, field := range unset[core.Event](someEvent, nil) {
		t.Errorf("core.Event.%s: someEvent in decode_test.go does not set it; set it there, and carry it in EventWith (event.go) and Event.Core (decode.go)", field)
	}
}

// unset returns the fields that a generator leaves zero in all of 100 values, without some fields.
func unset[T any](some func(*rapid.T) T, but []string) (fields []string) {
	values, seen := rapid.Custom(some), map[string]bool{}
	for seed := range 100 {
		value := reflect.ValueOf(values.Example(seed))
		for i := range value.NumField() {
			if !value.Field(i).IsZero() {
				seen[value.Type().Field(i).Name] = true
			}
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if !seen[field.Name] && !slices.Contains(but, field.Name) {
			fields = append(fields, field.Name)
		}
	}
	return fields
}
