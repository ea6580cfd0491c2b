package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Steps lists steps. See core.Chronicle. It reads in three rounds: the ids of all steps behind
// after, the sizes of the first ones, and then as many steps as fit into core.MaxRead bytes.
// With the sizes unknown, one page of the largest steps could fill the memory.
func (s *Store) Steps(ctx context.Context, run core.ID, epoch int, after core.ID, limit int) (core.Page[core.Step], error) {
	page, err := s.stepsAfter(ctx, run, epoch, after, min(max(limit, 1), core.MaxPage))
	if err != nil {
		return core.Page[core.Step]{}, fmt.Errorf("steps of run %s: %w", run, err)
	}
	return page, nil
}

// stepsAfter is Steps, for a limit that is in range.
func (s *Store) stepsAfter(ctx context.Context, run core.ID, epoch int, after core.ID, limit int) (page core.Page[core.Step], err error) {
	ids, err := s.read(ctx, s.sql.stepIDs, string(run), int64(epoch), string(after))
	if err != nil || len(ids) == 0 {
		return page, err
	}
	slices.SortFunc(ids, byKey)
	n, err := s.countFitting(ctx, ids[:min(limit, len(ids))])
	if err != nil {
		return page, err
	}
	results, err := s.readBatch(ctx, s.sql.readSteps.on(ids[:n]...))
	if err != nil {
		return page, err
	}
	for _, row := range results[0].Rows {
		if !lacksText(row) { // otherwise a purge deletes the run right now
			r := rowReader{row}
			st := r.step()
			st.HeldUntil = r.due()
			page.Items = append(page.Items, st)
		}
	}
	order.Sort(page.Items, func(a, b core.Step) int { return cmp.Compare(a.ID, b.ID) })
	page.More = len(ids) > n && len(page.Items) > 0
	return page, nil
}

// countFitting measures firstSizes steps in its first round, and sizesGrowth times as many in
// each further one. To measure a text that an earlier version stored in the step, the database
// reads the text, so measuring all steps first could cost as much as reading them.
const (
	firstSizes  = 16
	sizesGrowth = 4
)

// countFitting returns how many of the first steps it takes to reach core.MaxRead bytes, or
// len(ids).
func (s *Store) countFitting(ctx context.Context, ids [][]any) (n int, err error) {
	total := 0
	for some := firstSizes; n < len(ids); some *= sizesGrowth {
		chunk := ids[n:min(n+some, len(ids))]
		results, err := s.readBatch(ctx, s.sql.stepSizes.on(chunk...))
		if err != nil {
			return 0, err
		}
		sizes := make(map[string]int, len(chunk))
		for _, row := range results[0].Rows {
			sizes[textOf(row[sizedStep])] = sizeOfStep(row)
		}
		for _, id := range chunk {
			n++
			if total += sizes[rowKey(id)]; total >= core.MaxRead {
				return n, nil
			}
		}
	}
	return n, nil
}

// sizeOfStep returns how many bytes the texts of a step have, from a row of stepSizes. A text
// in step_texts has its size in its name.
func sizeOfStep(row []any) int {
	state := intOf(row[sizedState]) + sizeOf(textOf(row[sizedStateName]))
	if row[sizedPasses] == "yes" { // the output is the state, see stepTextRows.output
		return 2 * state
	}
	return state + intOf(row[sizedOutput]) + sizeOf(textOf(row[sizedOutputName]))
}

// maxSurveyBytes bounds the bytes of different States and Outputs when all steps of an epoch
// are read at once.
const maxSurveyBytes = 128 << 20

// surveyAll reads all steps of an epoch, for a redrive that makes new steps from them. Steps
// with the same text share it in memory.
func (s *Store) surveyAll(ctx context.Context, run core.ID, epoch int) (all []core.Step, err error) {
	texts := textPool{byName: map[string][]byte{}}
	after := core.ID("")
	for {
		page, err := s.stepsAfter(ctx, run, epoch, after, core.MaxPage)
		if err != nil {
			return nil, fmt.Errorf("survey run %s: %w", run, err)
		}
		for i := range page.Items {
			st := &page.Items[i]
			st.State, st.Output = texts.intern(st.StateName, st.State), texts.intern(st.OutputName, st.Output)
			after = st.ID
		}
		all = append(all, page.Items...)
		if texts.bytes > maxSurveyBytes {
			return nil, core.Refuse(core.Invalid, "the steps of workflow run %s hold more than %d MiB of states and outputs; redrive it from the start", run, maxSurveyBytes>>20)
		}
		if !page.More {
			return all, nil
		}
	}
}

// A textPool keeps one copy of each text in memory.
type textPool struct {
	byName map[string][]byte
	bytes  int
}

// intern returns the pool's copy of a text. A text from step_texts comes with its name; any
// other is named here. Texts below sharedTextMin are not pooled: hashing them costs more than
// the copy.
func (s *textPool) intern(name string, text []byte) []byte {
	if len(text) < sharedTextMin {
		return text
	}
	if name == "" {
		name = nameOf(text)
	}
	if known := s.byName[name]; known != nil {
		return known
	}
	s.byName[name] = text
	s.bytes += len(text)
	return text
}
