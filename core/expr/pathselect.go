package expr

// one returns the first value that the path selects, and whether there is one. For a singular
// path it allocates nothing. Singular paths are by far the most common ones in filters, keys
// and templates.
func (p *Path) one(b *budget, root any) (v any, ok bool) {
	if p.singular {
		return follow(b, p.segments, root)
	}
	if all := p.all(b, root); len(all) > 0 {
		return all[0], true
	}
	return nil, false
}

// all returns the values that the path selects. Values of an array come in its order, values
// of an object in the order of their names. With ".." a node comes before its descendants. A
// value that several selectors pick comes several times. The root is a tree such as
// [Document.Value] returns.
func (p *Path) all(b *budget, root any) []any {
	if p.singular {
		if v, ok := follow(b, p.segments, root); ok {
			return []any{v}
		}
		return nil
	}
	e := evaluation{root: root, budget: b}
	if p.memos > 0 {
		e.memos = make([]memo, p.memos)
	}
	return e.selected(p.segments, root)
}

// all returns the values that a path within the path selects.
func (e *evaluation) all(q query, current any) []any {
	if q.root {
		current = e.root
	}
	return e.selected(q.segments, current)
}

// selected applies the segments one after the other. Each segment maps the list of found values
// to the next list. It returns nil once the budget is spent; the caller asks the budget before
// it uses the result.
func (e *evaluation) selected(segments []segment, from any) []any {
	found := []any{from}
	for i := range segments {
		s := &segments[i]
		// Most segments pick at most one value of each.
		next := make([]any, 0, len(found))
		for _, v := range found {
			if s.descendant {
				next = e.appendDescendants(next, s, v)
			} else {
				next = e.appendSelected(next, s, v)
			}
			if e.budget.spent() {
				return nil
			}
		}
		found = next
	}
	return found
}

// follow walks a singular path. The steps are spent in advance, for all segments, since a walk
// along names and indexes is short.
func follow(b *budget, segments []segment, v any) (any, bool) {
	b.spend(len(segments))
	for i := range segments {
		var ok bool
		if s := &segments[i].selectors[0]; s.kind == byName {
			v, ok = member(v, s.name)
		} else {
			v, ok = element(v, s.index)
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// member returns the member of an object, and false for any other value.
func member(v any, name string) (any, bool) {
	object, _ := v.(map[string]any)
	v, ok := object[name]
	return v, ok
}

// element returns the i-th element of an array, counted from its end if i < 0.
func element(v any, i int) (any, bool) {
	list, _ := v.([]any)
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// appendDescendants applies a segment to v and to everything below it. The recursion is at most
// as deep as the payload, which has at most maxDepth levels.
func (e *evaluation) appendDescendants(to []any, s *segment, v any) []any {
	// The value itself comes before the values below it.
	to = e.appendSelected(to, s, v)
	for _, child := range e.children(v) {
		// Other values have nothing below them.
		switch child.(type) {
		case []any, map[string]any:
			to = e.appendDescendants(to, s, child)
		}
	}
	return to
}

// appendSelected applies a segment to v.
func (e *evaluation) appendSelected(to []any, s *segment, v any) []any {
	for i := range s.selectors {
		// Each selector costs a step for each value, also if it selects nothing.
		if !e.budget.spend(1) {
			return to
		}
		switch sel := &s.selectors[i]; sel.kind {
		case byName:
			if v, ok := member(v, sel.name); ok {
				to = append(to, v)
			}
		case byIndex:
			if v, ok := element(v, sel.index); ok {
				to = append(to, v)
			}
		case bySlice:
			to = e.appendSlice(to, sel, v)
		case byWildcard:
			children := e.children(v)
			// The copies are paid for before they are made.
			if e.budget.spend(stepsPerValue * len(children)) {
				to = append(to, children...)
			}
		case byTest:
			for _, child := range e.children(v) {
				if sel.test.holds(e, child) && e.budget.spend(stepsPerValue) {
					to = append(to, child)
				}
			}
		}
	}
	return to
}

// appendSlice appends the elements from one index to another, in steps that may be negative.
// The library computes the bounds by the rules of RFC 9535.
func (e *evaluation) appendSlice(to []any, s *selector, v any) []any {
	list, _ := v.([]any)
	// An array that is shorter than the slice gives the part that it has.
	low, high := s.slice.Bounds(len(list))
	step := s.slice.Step()
	for i := low; step > 0 && i < high && e.budget.spend(1+stepsPerValue); i += step {
		to = append(to, list[i])
	}
	for i := high; step < 0 && i > low && e.budget.spend(1+stepsPerValue); i += step {
		to = append(to, list[i])
	}
	return to
}

// stepsPerValue is how many steps a selected value costs: a list of values is copied as it
// grows.
const stepsPerValue = 2

// stepsPerMember is how many steps each member of an object costs to sort the members.
const stepsPerMember = 8

// children returns the elements of an array, or the values of an object in the order of their
// names. It returns none if the budget does not suffice for all of them.
func (e *evaluation) children(v any) []any {
	switch v := v.(type) {
	case []any:
		if e.budget.spend(len(v)) {
			return v
		}
	case map[string]any:
		// Sorting is paid for before it begins.
		if !e.budget.spend((stepsPerMember + 1) * len(v)) {
			return nil
		}
		var few [16]string
		values := make([]any, 0, len(v))
		for _, name := range members(few[:0], v) {
			values = append(values, v[name])
		}
		return values
	}
	return nil
}
