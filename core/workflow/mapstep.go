package workflow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A mapStep runs a step for each element of an array. Its result is the array of the results.
// Its items have rows of their own, whose Branch is the index of the item.
type mapStep struct {
	inline
	of    *step
	items *expr.Reference
	each  *list
	most  int // maximum of items at once; 0: all
}

// newMap compiles the iterator as a list of one step, which all items share.
func newMap(s *step, c config.Step) (kind, error) {
	if c.ItemsPath.Value == nil {
		return nil, errors.New("there is no items_path")
	}
	// A url is short for an iterator of type http.
	each := config.Step{Name: "item", Type: "http", URL: c.URL, Method: c.Method, Headers: c.Headers}
	if c.Iterator != nil {
		each = *c.Iterator
		each.Name = cmp.Or(each.Name, "item")
	}
	// The list has no name: the label in the paths is the index of the item.
	l, err := compileList("", []config.Step{each})
	if err != nil {
		return nil, err
	}
	return &mapStep{of: s, items: c.ItemsPath.Value, each: l, most: c.MaxConcurrency}, nil
}

func (k *mapStep) typ() string    { return "map" }
func (k *mapStep) exits() []*step { return nil }

// inside returns the same list for each index: an index beyond the array names no stored step.
func (k *mapStep) inside(string) *list { return k.each }

func (k *mapStep) end(m *move, r *row, e core.StepEnd) bool { return m.enterByJob(r, e) }

// enter begins the items the first time. It is entered again when all items have ended, and
// joins their outputs.
func (k *mapStep) enter(m *move, r *row) {
	if r.fanned() {
		m.join(r)
		return
	}
	r.Attempt++
	items, err := k.split(m.scope(r, r.Attempt))
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	// There is nothing to wait for.
	if len(items) == 0 {
		m.passResult(r, []byte("[]"))
		return
	}
	// All items get rows now, so that the array is read only once. Items beyond max_concurrency
	// get no jobs yet.
	f := core.Fan{Total: len(items)}
	f.Started = k.atOnce(f)
	if !m.fan(r, f) {
		return
	}
	c := readCarry(r.Carry).within()
	for i, item := range items {
		c.Index = &i
		m.wrote(r.Name, r.Path, len(item))
		x := m.fork(r, k.each, strconv.Itoa(i), item, c)
		// Only these begin now. The others wait for their turn: see nextItem.
		if i < f.Started {
			m.ahead = append(m.ahead, x)
		}
	}
}

// atOnce returns how many items may have begun, given the counts in f.
func (k *mapStep) atOnce(f core.Fan) int {
	if k.most == 0 {
		return f.Total
	}
	return min(f.Total, f.Ended+k.most)
}

// split returns the elements of the array that the step works on, as JSON. Each item must be a
// valid state by itself, so each is checked.
func (k *mapStep) split(s scope) (items [][]byte, err error) {
	seen, err := s.inputDocument(k.of.input)
	if err != nil {
		return nil, err
	}
	v, err := one(k.items, seen, s.context())
	if err != nil {
		return nil, err
	}
	array, ok := v.([]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is %s, not an array", k.items, withArticle(typeName(v)))
	case len(array) > maxItems:
		return nil, fmt.Errorf("%s has %d items; at most %d are allowed", k.items, len(array), maxItems)
	}
	for _, element := range array {
		text, err := checked(encode(element))
		if err != nil {
			return nil, err
		}
		items = append(items, text)
	}
	return items, nil
}

// nextItem begins the next item that waits for its turn.
func (m *move) nextItem(above *row) {
	// All items have begun, or the step ends early.
	if above.Fan.Started == above.Fan.Total || m.expired || !above.Status.Open() {
		return
	}
	// The item has a row since the step began. It may not have been read.
	k := above.step.kind.(*mapStep)
	path := above.Path + "/" + strconv.Itoa(above.Fan.Started) + "/" + k.each.steps[0].name
	above.Fan.Started++
	for _, r := range m.order {
		if r.Path == path {
			m.takesTurn(r)
			return
		}
	}
	m.need(core.Wanted{Paths: []string{path}})
}

// takesTurn begins an item. A wait step counts its time from now on. Otherwise its wait would
// have begun while it waited for its turn.
func (m *move) takesTurn(r *row) {
	if r.Type == "wait" {
		c := readCarry(r.Carry)
		c.Turn = m.now.UnixMilli()
		r.Carry, r.changed = c.text(), true
	}
	m.ahead = append(m.ahead, r)
}

// joined returns the array of the items' outputs, in the order of the items. The rows come in
// the order in which the items ended.
func (k *mapStep) joined(leaves []*row) []byte {
	slices.SortFunc(leaves, func(a, b *row) int { return cmp.Compare(itemIndex(&a.Step), itemIndex(&b.Step)) })
	texts := make([][]byte, len(leaves))
	for i, r := range leaves {
		texts[i] = r.Output
	}
	return slices.Concat([]byte{'['}, bytes.Join(texts, []byte{','}), []byte{']'})
}

// itemIndex returns the index of the item to which a step belongs.
func itemIndex(s *core.Step) int {
	i, _ := strconv.Atoi(s.Branch)
	return i
}
