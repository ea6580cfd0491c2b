package manage

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// MaxLines is the most steps and entries on one page about a run.
const MaxLines = 5000

// A Place is the position where a page about a run begins: after a step of an epoch, or,
// after the last step, after an entry of the history. The zero Place is the beginning. All
// pages have the epoch of the first page, although the run may be redriven meanwhile.
type Place struct {
	Epoch int     // of Step; 0 on pages of the history alone
	Step  core.ID // empty for the first page
	Seq   int     // of the last entry before the page
	Story bool    // all steps are before the page
}

// Zero reports whether a place is the beginning.
func (p Place) Zero() bool { return p == Place{} }

// String returns the place as a query parameter; empty for the beginning.
func (p Place) String() string {
	switch {
	case p.Story:
		return "h" + strconv.Itoa(p.Seq)
	case p.Step != "":
		return fmt.Sprintf("s%d-%s", p.Epoch, p.Step)
	}
	return ""
}

// ParsePlace reads the result of String. Any other text is refused with [core.Invalid].
func ParsePlace(text string) (p Place, err error) {
	wrong := core.Refuse(core.Invalid, "after must be the next of the page before, such as s1-01JB2Q8Z1TN5W3C4E7G9HKMRSV; not %q", text)
	if text == "" {
		return p, nil
	}
	if seq, is := strings.CutPrefix(text, "h"); is {
		if p.Seq, err = strconv.Atoi(seq); err != nil || p.Seq < 0 {
			return Place{}, wrong
		}
		p.Story = true
		return p, nil
	}
	epoch, step, _ := strings.Cut(strings.TrimPrefix(text, "s"), "-")
	if p.Epoch, err = strconv.Atoi(epoch); err != nil || p.Epoch < 1 || text[0] != 's' {
		return Place{}, wrong
	}
	if p.Step, err = core.ParseID(step); err != nil {
		return Place{}, wrong
	}
	return p, nil
}

// A page is an Inspected under construction.
type page struct {
	*Runs
	Inspected
	lines int // steps and entries for which the page still has room
	bytes int // in the page
}

// read fills the page from a place on: steps first, and the history if room is left.
func (p *page) read(ctx context.Context, from Place) error {
	p.bytes = len(p.Output)
	if !from.Story {
		if from.Epoch == 0 {
			from.Epoch = p.Epoch
		}
		more, err := p.readSteps(ctx, from)
		if err != nil || more {
			return err
		}
		from = Place{Story: true}
	}
	return p.readHistory(ctx, from.Seq)
}

// full reports whether the page has reached its number of lines or core.MaxRead bytes.
func (p *page) full() bool { return p.lines <= 0 || p.bytes >= core.MaxRead }

// readSteps reports whether there are more steps than the page has room for.
func (p *page) readSteps(ctx context.Context, from Place) (more bool, err error) {
	for more = true; more && !p.full(); {
		steps, err := p.store.Steps(ctx, p.ID, from.Epoch, from.Step, min(p.lines, core.MaxPage))
		if err != nil {
			return false, err
		}
		more = steps.More
		for _, s := range steps.Items {
			p.bytes += len(s.State) + len(s.Output)
			from.Step = s.ID
		}
		p.lines -= len(steps.Items)
		p.Steps = append(p.Steps, steps.Items...)
	}
	if err := p.showCalls(ctx, p.Run, p.Steps); err != nil {
		return false, err
	}
	if more {
		p.Next = from
	}
	return more, p.showPayload(ctx, p.Run, p.Steps)
}

// readHistory fills the rest of the page with entries.
func (p *page) readHistory(ctx context.Context, seq int) error {
	for more := true; more; {
		if p.full() {
			if seq < p.Seq {
				p.Next = Place{Story: true, Seq: seq}
			}
			return nil
		}
		limit := min(p.lines, core.MaxPage)
		entries, err := p.store.History(ctx, p.ID, seq, limit)
		if err != nil {
			return err
		}
		more = len(entries) == limit && entries[limit-1].Seq < p.Seq
		for _, e := range entries {
			p.bytes += len(e.Data)
			seq = e.Seq
		}
		p.lines -= len(entries)
		p.History = append(p.History, entries...)
	}
	return nil
}
