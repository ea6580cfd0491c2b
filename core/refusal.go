package core

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the kind of a Refusal. Edges map it to a status or exit code.
type Kind int

// The kinds of refusal.
const (
	Invalid      Kind = iota + 1 // the request itself is wrong
	Unauthorized                 // the caller did not prove its identity
	Forbidden                    // the caller's identity is known and has no permission
	NotFound                     // the requested row or route does not exist
	TooLarge                     // more bytes than are accepted
	Unsupported                  // a form of body that is not accepted
	Unavailable                  // impossible now; possible later
	Looped                       // it passed through too many gateways before
)

// A Refusal is an error whose message is meant for the caller, word for word.
// Any other error is "Internal error" outside and a log line inside.
type Refusal struct {
	Kind    Kind
	Message string

	// Cause is the error behind the refusal, for the log; may be nil.
	Cause error

	// RetryAfter is the time after which an Unavailable caller may try again. Zero means
	// the default of the edge.
	RetryAfter time.Duration
}

// Refuse makes a refusal with a formatted message.
func Refuse(k Kind, format string, args ...any) *Refusal {
	return &Refusal{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Error is the message, with the cause if there is one.
func (r *Refusal) Error() string {
	if r.Cause != nil {
		return r.Message + ": " + r.Cause.Error()
	}
	return r.Message
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// Untouched wraps an error of writes. It says that the writes took no effect and will take
// none. After any other Unavailable error this is not known.
func Untouched(err error) error { return &untouched{err} }

type untouched struct{ error }

func (u *untouched) Unwrap() error { return u.error }

// NoEffect reports whether err is, or wraps, an [Untouched].
func NoEffect(err error) bool {
	var u *untouched
	return errors.As(err, &u)
}

// IsKind reports whether err is, or wraps, a refusal of this kind.
func IsKind(err error, k Kind) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == k
}
