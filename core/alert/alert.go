// Package alert tells people that something is wrong.
//
// The idea to know: an alert is an event like any other, of source
// [core.AlertSource], with one job for each place that wants it. So it is stored
// in one commit, tried again by the worker when a chat service is down, and
// listed where all jobs are. What is stored is the generic form; the form of the
// place is made of it at the moment of sending, by [Sender], so that a place may
// change its format while alerts wait for it.
//
//	failure ─▶ Desk ─────────────────▶ Accept ─┐
//	                                           ├─▶ lane alert/<id> ─▶ worker ─▶ Sender ─▶ place
//	death ───▶ Obituaries ─▶ Settle or Transit ┘
//
// Failed verifications can be caused by anyone at any rate. A [Desk] counts them
// and tells at most one a minute and source, in a process by its own count and in
// a fleet by the delivery id, which names the minute.
//
// Each dead job and each workflow run that failed needs somebody: [Obituaries] are
// written for all of them, but never for an alert. What a chat service would refuse as
// too many at once waits in the lane, as far as [Pace] says.
//
// An alert carries no payload and no secret. The URL of a place is one, since chat
// services put the credential into it: this package sees it only to name a lane.
//
// alert imports core and core/worker, and of the standard library neither
// net/http nor os.
package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Kind is what an alert is about, in the words of the configuration.
type Kind string

// The kinds of alerts.
const (
	DLQ                 Kind = "dlq"                  // a job died, or a workflow run failed
	VerificationFailure Kind = "verification_failure" // a sender could not be verified
)

// EventType is the type of the events that are alerts of this kind.
func (k Kind) EventType() string { return "alert." + string(k) }

// A Place is where alerts are posted.
type Place struct {
	Lane core.Lane // of the jobs that go there; see [Lane]
	On   []Kind    // what it wants to be told
}

// Lane is the lane of a place with this URL. Its id is the beginning of the URL's
// SHA-256, 12 hexadecimal digits: it does not tell the URL, and it stays the same
// when places are added, removed or put in another order.
func Lane(url string) core.Lane {
	sum := sha256.Sum256([]byte(url))
	return core.AlertLane(hex.EncodeToString(sum[:6]))
}

// wanting are the lanes of the places that want alerts of a kind, each once.
func wanting(kind Kind, places []Place) (lanes []core.Lane) {
	for _, p := range places {
		if slices.Contains(p.On, kind) && !slices.Contains(lanes, p.Lane) {
			lanes = append(lanes, p.Lane)
		}
	}
	return lanes
}

// A mailing is how alerts of one kind become events.
type mailing struct {
	kind        Kind
	ids         *core.IDs
	lanes       []core.Lane // of the places that want them
	maxAttempts int
}

// arrivalAbout is the event that a notice about another event becomes. It has the hops of
// that event, so that a destination which leads back here does not cause alerts for ever.
func (m mailing) arrivalAbout(e *core.Event, n notice, at time.Time) core.Arrival {
	a := m.arrival(n, at)
	if hops := e.Headers[core.Hops]; hops != "" {
		a.Event.Headers = map[string]string{core.Hops: hops}
	}
	return a
}

// arrival is the event that a notice becomes, with a job for each place. What all
// notices say is filled in.
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
	Attempts  int    `json:"attempts,omitempty"`
	Error     string `json:"error,omitempty"`
	Reason    string `json:"reason,omitempty"`
	ClientIP  string `json:"client_ip,omitempty"`
	Count     int    `json:"count,omitempty"`
	CreatedAt string `json:"created_at"` // as [core.FormatTime] writes it
}

func (n notice) encode() []byte {
	b, err := json.Marshal(n)
	if err != nil {
		panic("alert: " + err.Error()) // text and numbers always encode
	}
	return b
}
