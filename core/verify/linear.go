package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// newLinear makes the scheme of Linear's webhooks: HMAC-SHA256 of the body in hexadecimal in
// Linear-Signature. The body has its time of sending in Unix milliseconds, in its member
// webhookTimestamp. As Linear recommends, the time may be 60 s off. See
// https://linear.app/developers/webhooks.
func newLinear(o Options) (Scheme, error) {
	return &linear{bodyHMAC{headers: []string{"Linear-Signature"}, text: inHex, keys: newKeys(o.Secrets)}}, nil
}

// A linear verifies the body like other schemes, and then the time in it.
type linear struct{ body bodyHMAC }

// linearTime names the time in errors, as other schemes name their header.
const linearTime = "webhookTimestamp of the body"

// Verify reads the body only after it has verified the signature.
func (s *linear) Verify(r Request, now time.Time) error {
	if err := s.body.Verify(r, now); err != nil {
		return err
	}
	return checkLinearTime(r.Body, now)
}

// checkLinearTime is checkTime in milliseconds and with Linear's own window.
func checkLinearTime(body []byte, now time.Time) error {
	at, err := sentAt(body)
	if err != nil {
		return malformed(linearTime, err.Error())
	}
	const most = int64(linearWindow / time.Millisecond)
	switch n := now.UnixMilli(); {
	case at < n-most:
		return mismatch(linearTime, fmt.Sprintf("is from %d ms ago; at most %d ms are allowed", n-at, most))
	case at > n+most:
		return mismatch(linearTime, fmt.Sprintf("is from %d ms ahead; at most %d ms are allowed", at-n, most))
	}
	return nil
}

// sentAt returns the time of sending in a body, in Unix milliseconds.
func sentAt(body []byte) (int64, error) {
	var message struct {
		At json.RawMessage `json:"webhookTimestamp"`
	}
	if json.Unmarshal(body, &message) != nil {
		return 0, errors.New("cannot be read: the body is not a JSON object")
	}
	if len(message.At) == 0 {
		return 0, errors.New("is absent")
	}
	at, ok := unixNumber(string(message.At))
	if !ok {
		return 0, errors.New("is not a time in Unix milliseconds")
	}
	return at, nil
}

// Sign signs a body that has the time now in it.
func (s *linear) Sign(m Message, now time.Time) (map[string]string, error) {
	var refusal *core.Refusal
	if errors.As(checkLinearTime(m.Body, now), &refusal) {
		return nil, fmt.Errorf("linear signs the time that the body has: %w", refusal.Cause)
	}
	return s.body.Sign(m, now)
}
