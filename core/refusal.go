package core

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what kind of no a Refusal is. Edges map it to a status or exit code.
type Kind int

// The kinds of refusal.
const (
	Invalid      Kind = iota + 1 // the request itself is wrong
	Unauthorized                 // the caller did not prove who it is
	Forbidden                    // the caller is known not to be welcome
	NotFound                     // what was asked for does not exist
	TooLarge                     // more bytes than are accepted
	Unsupported                  // a form of body that is not accepted
	Unavailable                  // cannot be done now; later it may
	Looped                       // it was in too many gateways before
)

// A Refusal is an error whose message is meant for the caller, word for word.
// Any other error is "Internal error" outside and a log line inside.
type Refusal struct {
	Kind    Kind
	Message string

	// Cause is the error behind the refusal, for the log; may be nil.
	Cause error

	// RetryAfter tells an Unavailable caller when to come back; zero means the
	// edge's default.
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

// Untouched is an error after which it is certain that the writes it is about took no effect
// and will take none. After an Unavailable that does not say so, this is not known.
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
