package config

import (
	"reflect"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Default returns the configuration of an empty file. Together with entries below it is the
// only place where a default is written. resolve.go has the values that one field takes from
// another.
func Default() *Config {
	return &Config{
		Database: Database{Driver: "sqlite", MaxConnections: 10},
		Server:   Server{Port: 8888, MaxBodySize: 1 << 20, MaxInbound: 100},
		Delivery: Delivery{
			Timeout:      seconds(30),
			DefaultRetry: Retry{Max: 5, Backoff: "exponential", Interval: seconds(30)},
			Record:       string(core.RecordNone),
		},
		Worker: Worker{
			StaleThresholdSecs: 300,
			RetentionHours:     72,
			AuditRetentionDays: 90,
			DrainTimeoutSecs:   30,
			MaxConcurrency:     10,
			BatchSize:          10,
		},
	}
}

// entries holds the initial value of an entry, before its fields are read. Fields with another
// default than zero are set here before the decoder reads the entry, so it need not know which
// fields are missing.
var entries = map[reflect.Type]any{
	reflect.TypeFor[Source]():         Source{Timezone: "UTC"},
	reflect.TypeFor[Handler]():        Handler{Type: "http", Method: "POST", CircuitBreaker: defaultBreaker},
	reflect.TypeFor[CircuitBreaker](): defaultBreaker,
	reflect.TypeFor[Lines]():          Lines{Limit: 1},
	reflect.TypeFor[Queue]():          Queue{VisibilityTimeout: seconds(30)},
	reflect.TypeFor[Alert]():          Alert{Type: "generic", Interval: seconds(600), Held: defaultHeld},
	reflect.TypeFor[Held]():           defaultHeld,
	reflect.TypeFor[Workflow]():       Workflow{MaxBytes: maxRunBytes},
	reflect.TypeFor[Param]():          Param{Type: "string", Required: true},
	reflect.TypeFor[Step]():           Step{Type: "http", Method: "POST", Retry: StepRetry{Max: 1}},
	reflect.TypeFor[Branch]():         Branch{Method: "POST"},
}

// defaultBreaker is the circuit breaker of a handler without settings for it.
var defaultBreaker = CircuitBreaker{Failures: core.BreakerThreshold, Cooldown: Duration{Duration: core.BreakerCooldown}}

// defaultHeld is for alerts on holds without settings for them.
var defaultHeld = Held{OlderThan: seconds(24 * 60 * 60)}

const (
	// maxRunBytes is workflows.*.max_bytes.
	maxRunBytes = 64 << 20
	// sqliteFile is the database of driver sqlite without a url.
	sqliteFile = "gateway.db"
	// iteratorName is the name of an iterator without one.
	iteratorName = "item"
)

// seconds returns a duration for a default.
func seconds(n int) Duration { return Duration{Duration: time.Duration(n) * time.Second} }
