package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Record stores the entry of a change that no other method makes. See core.Audit.
func (s *Store) Record(ctx context.Context) error {
	stmts := s.audited(ctx, s.sql.audit)
	if len(stmts) == 0 {
		return nil
	}
	if _, err := s.write(ctx, stmts...); err != nil {
		return fmt.Errorf("record a change: %w", err)
	}
	return nil
}

// audited returns the statement that stores the entry of the context's change; none if there is no
// change. Each guard has the values of the condition of st, for one of the rows that the batch may
// have changed: the entry is stored if the condition holds for one of them. A statement without a
// condition has no guards.
//
// A condition that looks for the effect of the change stands behind the statement that makes the
// change. A condition that looks at the state before it needs the rows locked.
func (s *Store) audited(ctx context.Context, st statement, guards ...[]any) []Stmt {
	e, ok := core.EntryOf(ctx, s.leases.Next)
	if !ok {
		return nil
	}
	row := []any{string(e.ID), e.Name, string(e.Role), e.Address, string(e.Via), string(e.Action), e.Target, encodeDetail(e.Detail)}
	if len(guards) == 0 {
		return []Stmt{st.on(row)}
	}
	rows := make([][]any, len(guards))
	for i, g := range guards {
		rows[i] = append(row[:len(row):len(row)], g...)
	}
	return []Stmt{st.on(rows...)}
}

// encodeDetail writes a detail as a JSON object; "" for none.
func encodeDetail(detail map[string]string) string {
	if len(detail) == 0 {
		return ""
	}
	text, _ := json.Marshal(detail) // strings alone, so it cannot fail
	return string(text)
}

// Audited lists entries, the newest first. See core.Audit. Ids grow with time, so a span of time
// is a range of ids. The other conditions are looked up in no index: it reads the entries of the
// span by the primary key until the page is full.
func (s *Store) Audited(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	if end := core.FirstID(f.Until); !f.Until.IsZero() && (f.After == "" || end < f.After) {
		f.After = end
	}
	q := s.sql.audits.below(f.After)
	if !f.Since.IsZero() {
		q.and("id >= ?", string(core.FirstID(f.Since)))
	}
	q.and("actor = ?", f.Actor)
	q.and("action = ?", string(f.Action))
	q.and("target = ?", f.Target)
	return pageOf(ctx, s, q, f.Limit, (*rowReader).auditEntry)
}

// auditEntry reads auditColumns.
func (r *rowReader) auditEntry() core.AuditEntry {
	e := core.AuditEntry{
		ID:     r.id(),
		Actor:  core.Actor{Name: r.text(), Role: core.Role(r.text()), Address: r.text(), Via: core.Via(r.text())},
		Change: core.Change{Action: core.AuditAction(r.text()), Target: r.text()},
	}
	if detail := r.text(); detail != "" {
		_ = json.Unmarshal([]byte(detail), &e.Detail) // written by encodeDetail
	}
	return e
}

// PurgeAudit deletes old entries. See core.Audit. It deletes in small commits and pauses after each,
// as Purge does.
func (s *Store) PurgeAudit(ctx context.Context, before time.Time, limit int) (total int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	rows, err := s.read(ctx, s.sql.oldAudits, string(core.FirstID(before)), int64(limit))
	size := commitSizeOf(s.dialect.purgeRows, 0)
	for len(rows) > 0 && err == nil {
		chunk := rows
		if size.rows > 0 {
			chunk = rows[:min(size.rows, len(rows))]
		}
		rows = rows[len(chunk):]
		began := time.Now()
		remove := s.sql.deleteAudits.on(chunk...).noMerge()
		remove.Lazy = true
		var results []Result
		if results, err = s.write(ctx, remove); err != nil {
			break
		}
		total += int(results[0].Changed)
		took := time.Since(began)
		if size = size.next(took, len(chunk)); size.rows > 0 && len(rows) > 0 {
			err = pause(ctx, pauseAfter(took))
		}
	}
	if err != nil {
		return total, fmt.Errorf("purge the audit: %w", err)
	}
	return total, nil
}

const auditColumns = `id, actor, role, address, via, action, target, detail`

// auditSQL are the statements of the audit. All but the last three store an entry: audit always, the
// others if the batch changes something. An entry whose id is stored is left out.
type auditSQL struct {
	audit                                                   statement
	auditRetried, auditRevived, auditSkipped, auditCanceled statement
	auditReplayed, auditMoved, auditBegun, auditEnded       statement
	auditHeld, auditReleased, auditClosed, auditAccepted    statement
	lockGate                                                statement

	audits                  listing
	oldAudits, deleteAudits statement
}

func newAuditSQL(d Dialect) auditSQL {
	entry := func(name, condition string) statement {
		return writing(name, d.insertIfAbsent("audit", auditColumns,
			`r.id, r.actor, r.role, r.address, r.via, r.action, r.target, r.detail`, "", condition, "id"))
	}
	// PostgreSQL would turn EXISTS into a join, and might read the table first. It finds the rows of
	// a subquery with an aggregate by the key.
	any := func(condition, from, key string) string {
		return `COALESCE((SELECT MAX(CASE WHEN ` + condition + ` THEN 1 ELSE 0 END) FROM ` + from + ` WHERE ` + key + `), 0)`
	}
	var canceled []string
	for _, jobs := range d.jobsOf(`r.event`) {
		canceled = append(canceled, any(`jobs.status = 'canceled' AND jobs.finished_at = r#at`, `jobs{use jobs_event}`, jobs))
	}
	q := auditSQL{
		audit: entry("audit", ""),

		// These look for the effect. A job that was retried is due now, a canceled one finished now,
		// and the ids of replayed jobs and of events and the marks of transitions are new.
		auditRetried: entry("audit_retried", any(`jobs.due_at = r#at AND jobs.status IN ('available', 'scheduled', 'retryable')`,
			`jobs{use PRIMARY}`, `jobs.id = r.job`)+` = 1`),
		auditCanceled: entry("audit_canceled", strings.Join(canceled, ` + `)+` > 0`),
		auditReplayed: entry("audit_replayed", any(`1 = 1`, `jobs{use PRIMARY}`, `jobs.id = r.job`)+` = 1`),
		auditAccepted: entry("audit_accepted", any(`1 = 1`, `events{use PRIMARY}`, `events.id = r.event`)+` = 1`),
		auditMoved:    entry("audit_moved", any(`mine.mark = r.mark`, ownEntry, `mine.run_id = r.run AND mine.seq = r#first`)+` = 1`),
		auditEnded:    entry("audit_ended", any(`operations.state = 'canceled' AND operations.finished_at = r#at`, `operations{use PRIMARY}`, `operations.id = r.operation`)+` = 1`),
		auditReleased: entry("audit_released", any(`gates.held_until = r#at AND gates.held_since = 0`, `gates{use PRIMARY}`, `gates.lane = r.lane`)+` = 1`),
		auditClosed:   entry("audit_closed", any(`gates.closed_at = r#at AND gates.moved_by = ''`, `gates{use PRIMARY}`, `gates.lane = r.lane`)+` = 1`),

		// The id of an operation is new, so this one looks at the state before. No row is to be locked.
		auditBegun: entry("audit_begun", any(`1 = 1`, `operations{use PRIMARY}`, `operations.id = r.operation`)+` = 0`),

		// These look at the state before, of a line or gate that the batch has locked.
		auditRevived: entry("audit_revived", any(`jobs.status = r.status`, `jobs{use PRIMARY}`, `jobs.id = r.job`)+` = 1`),
		auditSkipped: entry("audit_skipped", any(`line_slots.job_id = r.job AND line_slots.stopped_at > 0`, `line_slots{use PRIMARY}`, `line_slots.line = r.line`)+` = 1`),
		auditHeld: entry("audit_held", any(`gates.held_until = r#until AND gates.held_until > r#now AND gates.hold_reason = r.reason`,
			`gates{use PRIMARY}`, `gates.lane = r.lane`)+` = 0`),

		audits:       listing{"audits", d.sql(`SELECT ` + auditColumns + ` FROM audit{use PRIMARY} WHERE id < ?`)},
		oldAudits:    reading("old_audits", d.sql(`SELECT id FROM audit{use PRIMARY} WHERE id < ? ORDER BY id LIMIT {limit}`)),
		deleteAudits: writing("delete_audits", d.deleteRows("audit", `audit.id = r.id`)),
	}
	if d.lockRows != "" {
		q.lockGate = reading("lock_gate", d.selectRows(`gates.lane AS lane`, "gates{use PRIMARY}", `gates.lane = r.lane`)+" "+d.sql("{lock_rows gates}"))
	}
	return q
}
