package core

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The audit lists changes with their actors, times and addresses. An edge (a route, a command) puts
// the [Actor] into the context of a request, the service that makes the change adds a [Change], and
// the store writes an [AuditEntry] of both in the commit of the change. So no method between them
// has a parameter for it, and a crash leaves both or neither. Work that no operator asks for has no
// actor in its context, and leaves no entry.

// An Actor is the person or program that asks for a change.
type Actor struct {
	Name    string // of a token, "os:" and the name of a user, or one of the names below
	Role    Role   // of the token; "" for a command, which needs none
	Address string // of the client; "" if it is unknown or there is none
	Via     Via
}

// The names of actors that have no other name; see [ReservedActors].
const (
	ActorToken     = "auth_token" // the token with all rights
	ActorAnonymous = "anonymous"  // a client of an API without tokens
	ActorProcess   = "gateway"    // the process itself
)

// ReservedActors returns the names that no token may have.
func ReservedActors() []string { return []string{ActorToken, ActorAnonymous, ActorProcess} }

// A Via is the way in which a change was asked for.
type Via string

// The ways.
const (
	ViaAPI     Via = "api"     // a request to the management API
	ViaCommand Via = "command" // a command that works on the database
	ViaReload  Via = "reload"  // a process that read its configuration again
)

// An AuditAction is the kind of a change.
type AuditAction string

// The actions.
const (
	AuditRetry           AuditAction = "jobs.retry"
	AuditSkip            AuditAction = "jobs.skip"
	AuditCancel          AuditAction = "events.cancel"
	AuditReplay          AuditAction = "events.replay"
	AuditResetBreaker    AuditAction = "breakers.reset"
	AuditHold            AuditAction = "holds.hold"
	AuditRelease         AuditAction = "holds.release"
	AuditRetryQueue      AuditAction = "queues.retry"
	AuditDrain           AuditAction = "queues.drain"
	AuditFire            AuditAction = "schedules.fire"
	AuditRedrive         AuditAction = "runs.redrive"
	AuditCancelRun       AuditAction = "runs.cancel"
	AuditOperation       AuditAction = "operations.begin"
	AuditCancelOperation AuditAction = "operations.cancel"
	AuditReload          AuditAction = "config.reload"
)

// AuditActions returns all actions, in the order above.
func AuditActions() []AuditAction {
	return []AuditAction{AuditRetry, AuditSkip, AuditCancel, AuditReplay, AuditResetBreaker, AuditHold, AuditRelease,
		AuditRetryQueue, AuditDrain, AuditFire, AuditRedrive, AuditCancelRun, AuditOperation, AuditCancelOperation, AuditReload}
}

// ParseAuditAction reads an action as users write it. The error is a [Refusal] of kind [Invalid].
func ParseAuditAction(s string) (AuditAction, error) {
	var known []string
	for _, a := range AuditActions() {
		if string(a) == s {
			return a, nil
		}
		known = append(known, string(a))
	}
	return "", Refuse(Invalid, "action must be one of %s; not %q", strings.Join(known, ", "), s)
}

// A Change is an action on a target, as an actor asked for it.
type Change struct {
	Action AuditAction

	// Target names the changed record: the id of a job, event, run or operation, a lane such as
	// "handler/billing", or [AllTargets]. A longer text is cut to MaxAuditTarget bytes.
	Target string

	// Detail has further parameters of the change, by name. Empty values are left out, and longer
	// ones are cut to MaxAuditDetail bytes.
	Detail map[string]string
}

// AllTargets is the target of a change of everything that its action can change.
const AllTargets = "all"

// Bounds of the texts of an entry, in bytes.
const (
	MaxAuditTarget = 200
	MaxAuditDetail = 500
)

// An AuditEntry is a change that was made.
type AuditEntry struct {
	ID ID // made when the change began; its time is the entry's time
	Actor
	Change
}

// An AuditFilter selects entries. Zero fields select everything.
type AuditFilter struct {
	Actor, Target string
	Action        AuditAction

	// Since and Until select entries that were made at or after Since, before Until.
	Since, Until time.Time

	After ID  // continue below this id
	Limit int // 1 to MaxPage; 0 means DefaultPage
}

// An Audit keeps the entries of changes. Only PurgeAudit deletes an entry, and no method
// changes one.
type Audit interface {
	// Record stores the entry of the context's [Change] in a commit of its own. It is for a
	// change that no other method of the store makes. It stores nothing if the context has no
	// Change. The other methods that change something for an operator store the entry in the
	// commit of the change: the methods of Operations and Holds, Accept, BeginOperation,
	// EndOperation, CloseBreakers, Skip and Transit. A call that finds nothing to change stores no entry. A
	// change of several calls or commits has one entry, in the first of the commits. Sending a
	// change again stores no second entry.
	Record(ctx context.Context) error

	// Audited lists entries, newest first. A caller that follows After from page to page sees
	// every entry that existed at the first page exactly once.
	Audited(ctx context.Context, f AuditFilter) (Page[AuditEntry], error)

	// PurgeAudit deletes entries that were made before the given time, the oldest first, and
	// returns their number: at most limit, and fewer only if no more are left.
	PurgeAudit(ctx context.Context, before time.Time, limit int) (int, error)
}

// The keys of an actor and of a change in a context.
type (
	actorKey  struct{}
	changeKey struct{}
)

// ActorOf returns the actor of a context, if there is one.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// WithActor returns a context for the changes that the actor asks for.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// A pendingEntry is the entry of a change that was begun. Its id is made when the entry is first
// written, and stays for further commits of the change.
type pendingEntry struct {
	mu    sync.Mutex
	entry AuditEntry
}

// WithChange returns a context for the calls that make a change. A change within a change belongs
// to the outer one, and a change without an actor is not audited: then it returns ctx.
func WithChange(ctx context.Context, c Change) context.Context {
	a, ok := ActorOf(ctx)
	if !ok || ctx.Value(changeKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, changeKey{}, &pendingEntry{entry: AuditEntry{Actor: a, Change: c.bounded()}})
}

// Changing reports whether the context has a change that is to be audited.
func Changing(ctx context.Context) bool { return ctx.Value(changeKey{}) != nil }

// EntryOf returns the entry of the context's change, if there is one. The first call for a change
// makes its id.
func EntryOf(ctx context.Context, newID func() ID) (AuditEntry, bool) {
	p, ok := ctx.Value(changeKey{}).(*pendingEntry)
	if !ok {
		return AuditEntry{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entry.ID == "" {
		p.entry.ID = newID()
	}
	return p.entry, true
}

// bounded returns a change with texts that every database stores, within their bounds.
func (c Change) bounded() Change {
	c.Target = storable(c.Target, MaxAuditTarget)
	var detail map[string]string
	for name, value := range c.Detail {
		if value == "" {
			continue
		}
		if detail == nil {
			detail = map[string]string{}
		}
		detail[name] = storable(value, MaxAuditDetail)
	}
	c.Detail = detail
	return c
}

// storable returns the first bytes of a text up to a whole character, without NUL and without
// bytes that are no UTF-8: not every database stores them.
func storable(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
