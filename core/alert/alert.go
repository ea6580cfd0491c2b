// Package alert sends alerts to operators.
//
// The idea to know: an alert is an event like any other, of source [core.AlertSource], with
// one job for each place that wants it. So it is stored in one commit, retried by the
// worker while a chat service is down, and listed with all jobs. The stored form is
// generic. [Sender] converts it to the format of the place when it sends the alert, so that
// a place may change its format while alerts wait.
//
//	failure ─▶ Desk ─────────────────▶ Accept ─┐
//	health ──▶ Health ───────────────▶ Accept ─┼─▶ lane alert/<id> ─▶ worker ─▶ Sender ─▶ place
//	death ───▶ Obituaries ─▶ Settle or Transit ┤
//	end ─────▶ Endings ────▶ Settle ───────────┘
//
// Any client can cause failed verifications, at any rate. So a [Desk] counts them and sends
// at most one alert a minute and source. Within a process its own count ensures that. In a
// fleet the delivery id does, because it contains the minute.
//
// Each dead job and each failed workflow run needs an operator: [Obituaries] are made for
// all of them, but never for an alert. [Pace] spaces the posts to a chat service that would
// refuse a burst; meanwhile the alerts wait in their lane.
//
// [Endings] are about operations that are over.
//
// [Health] looks once a minute, in one process, for lanes that lag, old holds and quiet sources,
// and at breakers as soon as they move. Each transition causes one alert, also if several
// processes notice it.
//
// An alert contains no payload and no secret. The URL of a place is a secret, since chat
// services put the credential into it. This package uses the URL only to name a lane.
//
// alert imports core and core/worker, and of the standard library neither net/http nor os.
package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Kind is the kind of an alert, in the words of the configuration.
type Kind string

// The kinds of alerts.
const (
	DLQ                 Kind = "dlq"                  // a job died, or a workflow run failed
	VerificationFailure Kind = "verification_failure" // a sender could not be verified
	CircuitOpened       Kind = "circuit_opened"       // the circuit breaker of a handler opened
	CircuitClosed       Kind = "circuit_closed"       // it closed
	Lag                 Kind = "lag"                  // a lane has a due job that is old, or no more
	Held                Kind = "held"                 // a hold is old
	Quiet               Kind = "quiet"                // no event came from a source for long
	OperationFinished   Kind = "operation_finished"   // an operation finished or failed
)

// EventType returns the type of the events that are alerts of this kind.
func (k Kind) EventType() string { return "alert." + string(k) }

// A Place is a destination to which alerts are posted.
type Place struct {
	Lane core.Lane // of the jobs that go there; see [Lane]
	On   []Kind    // the kinds that it wants

	Health Thresholds // for the kinds on health that it wants
}

// Lane returns the lane of a place with this URL. Its id is the beginning of the URL's
// SHA-256, 12 hexadecimal digits. It does not reveal the URL, and does not change when
// places are added, removed or reordered.
func Lane(url string) core.Lane {
	sum := sha256.Sum256([]byte(url))
	return core.AlertLane(hex.EncodeToString(sum[:6]))
}

// wanting returns the lanes of the places that want alerts of a kind, each once.
func wanting(kind Kind, places []Place) (lanes []core.Lane) {
	for _, p := range places {
		if slices.Contains(p.On, kind) && !slices.Contains(lanes, p.Lane) {
			lanes = append(lanes, p.Lane)
		}
	}
	return lanes
}

// A mailing makes events of alerts of one kind.
type mailing struct {
	kind        Kind
	ids         *core.IDs
	lanes       []core.Lane // of the places that want them
	maxAttempts int
}

// arrivalAbout makes the event of a notice about another event. It has the hops of that
// event, so that a destination that leads back to this gateway does not cause alerts
// without end.
func (m mailing) arrivalAbout(e *core.Event, n notice, at time.Time) core.Arrival {
	a := m.arrival(n, at)
	if hops := e.Headers[core.Hops]; hops != "" {
		a.Event.Headers = map[string]string{core.Hops: hops}
	}
	return a
}

// arrival makes the event of a notice, with a job for each place. It fills in the common
// fields.
func (m mailing) arrival(n notice, at time.Time) core.Arrival {
	at = at.UTC().Truncate(time.Millisecond)
	n.Alert, n.CreatedAt = m.kind, core.FormatTime(at)
	a := core.Arrival{Event: core.Event{
		ID:          m.ids.Next(),
		Source:      core.AlertSource,
		Type:        m.kind.EventType(),
		Payload:     n.encode(),
		ContentType: "application/json",
		CreatedAt:   at,
	}}
	for _, lane := range m.lanes {
		a.Jobs = append(a.Jobs, core.NewJob{ID: m.ids.Next(), Lane: lane, MaxAttempts: m.maxAttempts})
	}
	return a
}

// A notice is an alert in the generic form. Fields that do not apply are absent.
type notice struct {
	Alert     Kind   `json:"alert"`
	Message   string `json:"message"`
	Source    string `json:"source,omitempty"`
	EventID   string `json:"event_id,omitempty"`
	EventType string `json:"event_type,omitempty"`
	Handler   string `json:"handler,omitempty"`
	Queue     string `json:"queue,omitempty"`
	Workflow  string `json:"workflow,omitempty"`
	JobID     string `json:"job_id,omitempty"`
	Operation string `json:"operation,omitempty"`
	Action    string `json:"action,omitempty"` // of the operation
	Attempts  int    `json:"attempts,omitempty"`
	Error     string `json:"error,omitempty"`
	Reason    string `json:"reason,omitempty"`
	ClientIP  string `json:"client_ip,omitempty"`
	Count     int    `json:"count,omitempty"`
	Since     string `json:"since,omitempty"`    // as CreatedAt
	Over      bool   `json:"over,omitempty"`     // a lane has caught up
	LeftOut   int    `json:"left_out,omitempty"` // transitions without an alert since the last one
	CreatedAt string `json:"created_at"`         // as [core.FormatTime] writes it
}

func (n notice) encode() []byte {
	b, err := json.Marshal(n)
	if err != nil {
		panic("alert: " + err.Error()) // texts and numbers always encode
	}
	return b
}
