package manage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
)

// Curl returns the command that sends the request of a job's attempt again. It refuses as [Numbered]
// and [CurlOf] do.
func (j *Jobs) Curl(ctx context.Context, id core.ID, number int) (*curl.Command, error) {
	job, err := j.job(ctx, id)
	if err != nil {
		return nil, err
	}
	var attempts []core.Attempt
	for more := true; more; {
		page, err := j.Attempts(ctx, id, len(attempts))
		if err != nil {
			return nil, err
		}
		attempts, more = append(attempts, page.Items...), page.More
	}
	attempt, err := Numbered(id, attempts, number)
	if err != nil {
		return nil, err
	}
	return CurlOf(ctx, job, attempt, j.store.SentBody, j.store.Event)
}

// Numbered returns the newest of a job's attempts with a number. A missing number is refused as
// [core.NotFound], with the numbers of the recorded attempts.
func Numbered(job core.ID, attempts []core.Attempt, number int) (core.Attempt, error) {
	var known []string
	for _, a := range slices.Backward(attempts) {
		if a.Number == number {
			return a, nil
		}
		known = append([]string{strconv.Itoa(a.Number)}, known...)
	}
	if len(known) == 0 {
		return core.Attempt{}, core.Refuse(core.NotFound, "job %s has no recorded attempt", job)
	}
	return core.Attempt{}, core.Refuse(core.NotFound, "job %s has no record of attempt %d; there are %s", job, number, strings.Join(known, ", "))
}

// NotRecorded returns the refusal for an attempt without an exchange.
func NotRecorded(number int) error {
	return core.Refuse(core.NotFound, "attempt %d did not record its request; with delivery.record: headers, or record: headers of its handler, later attempts do", number)
}

// CurlOf returns the command that sends the request of an attempt again. body reads the kept body
// of an attempt, and event the event of a job. An attempt whose exchange is not recorded is refused
// as [core.NotFound]. A call over gRPC, and a body that is neither kept in full nor the payload of
// the event, are refused as [core.Invalid].
func CurlOf(ctx context.Context, job core.Job, a core.Attempt, body func(ctx context.Context, job core.ID, number int) (string, error),
	event func(context.Context, core.ID) (core.Event, error),
) (*curl.Command, error) {
	command, err := CurlWithoutBody(a)
	if err != nil {
		return nil, err
	}
	x := a.Exchange
	switch {
	case x.BodySize == 0:
	case x.KeptBody > 0 && !x.CutBody():
		kept, err := body(ctx, job.ID, a.Number)
		if err != nil {
			return nil, err
		}
		command.Send(core.Event{Payload: []byte(kept)})
	default:
		e, err := event(ctx, job.EventID)
		if err != nil {
			return nil, err
		}
		if HashOf(e.Payload) != x.BodySHA256 {
			return nil, core.Refuse(core.Invalid, "attempt %d sent %d bytes that are not the payload of event %s: they were made from it; give a file with them: gateway inspect %s --attempt %d --curl --body-file",
				a.Number, x.BodySize, job.EventID, job.ID, a.Number)
		}
		command.Send(e)
	}
	return command, nil
}

// CurlWithoutBody is CurlOf without the body, which the caller adds.
func CurlWithoutBody(a core.Attempt) (*curl.Command, error) {
	switch {
	case a.Exchange == nil:
		return nil, NotRecorded(a.Number)
	case strings.HasPrefix(a.Exchange.Method, "/"):
		return nil, core.Refuse(core.Invalid, "attempt %d was a gRPC call, which curl cannot make", a.Number)
	}
	return curl.Of(a.Exchange), nil
}

// HashOf returns the SHA-256 of a body in hexadecimal, as an exchange has it.
func HashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
