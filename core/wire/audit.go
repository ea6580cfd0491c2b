package wire

import "github.com/eventgateway/gateway/core"

// An AuditEntry is a change that an operator made.
type AuditEntry struct {
	ID      string            `json:"id"`
	At      Time              `json:"at"`
	Actor   string            `json:"actor"`
	Role    Text              `json:"role"`    // of the token; null for a command or a reload
	Address Text              `json:"address"` // of the client; null if there is none or it is unknown
	Via     string            `json:"via"`
	Action  string            `json:"action"`
	Target  string            `json:"target"`
	Detail  map[string]string `json:"detail"` // further parameters of the change; may be empty
}

// AuditEntryOf returns the record of an entry.
func AuditEntryOf(e core.AuditEntry) AuditEntry {
	detail := e.Detail
	if detail == nil {
		detail = map[string]string{}
	}
	return AuditEntry{
		ID: string(e.ID), At: Time{e.ID.Time()}, Actor: e.Name, Role: Text(e.Role), Address: Text(e.Address), Via: string(e.Via),
		Action: string(e.Action), Target: e.Target, Detail: detail,
	}
}

// Core returns the entry of a record.
func (e AuditEntry) Core() core.AuditEntry {
	entry := core.AuditEntry{
		ID:     core.ID(e.ID),
		Actor:  core.Actor{Name: e.Actor, Role: core.Role(e.Role), Address: string(e.Address), Via: core.Via(e.Via)},
		Change: core.Change{Action: core.AuditAction(e.Action), Target: e.Target},
	}
	if len(e.Detail) > 0 {
		entry.Detail = e.Detail
	}
	return entry
}

// An AuditPage is a page of entries, newest first. Next is the id to continue after.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Next    Text         `json:"next"`
}

// Core returns the page of a record.
func (p AuditPage) Core() core.Page[core.AuditEntry] {
	return core.Page[core.AuditEntry]{Items: List(p.Entries, AuditEntry.Core), More: p.Next != ""}
}

// AuditPageOf returns the record of a page.
func AuditPageOf(p core.Page[core.AuditEntry]) AuditPage {
	page := AuditPage{Entries: List(p.Items, AuditEntryOf)}
	if n := len(p.Items); p.More && n > 0 {
		page.Next = Text(p.Items[n-1].ID)
	}
	return page
}
