package workflow

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// maxDrawn is the most steps of a definition that are drawn. A drawing of more is of no use, and takes
// long to make: a way over n layers has n points.
const maxDrawn = 300

// Sizes of a drawing.
const (
	stepWidth   = 212
	stepHeight  = 58
	headHeight  = 58 // of a parallel or map step, above its branches
	titleHeight = 24 // of a branch with a name
	padding     = 14
	gapAcross   = 26 // between neighbours
	gapDown     = 34 // between layers
	gapLabeled  = 22 // more than that, if ways between the layers have labels
	portGap     = 26 // between the ends of two ways at the same side of a step
	laneWidth   = 18 // of a way that passes a layer
)

// Diagram returns the drawn definition. The error names the number of steps if they are too many to be
// drawn.
func (d *Definition) Diagram() (core.Diagram, error) {
	if n := d.top.count(); n > maxDrawn {
		return core.Diagram{}, fmt.Errorf("the definition has %d steps; at most %d are drawn", n, maxDrawn)
	}
	b := d.top.draw("", "", d.onFailure)
	b.move(1, 1) // room for the lines of the outermost boxes
	return core.Diagram{Width: b.width + 2, Height: b.height + 2, Steps: b.steps, Ways: b.ways, Branches: b.branches}, nil
}

// count returns how many steps a list has, also inside of its steps.
func (l *list) count() (n int) {
	for _, s := range l.steps {
		n++
		switch k := s.kind.(type) {
		case *parallelStep:
			for _, b := range k.branches {
				n += b.count()
			}
		case *mapStep:
			n += k.each.count()
		}
	}
	return n
}

// A block is a part of a drawing, with places relative to its own corner.
type block struct {
	width, height int
	steps         []core.DrawnStep
	ways          []core.Way
	branches      []core.DrawnBranch
}

// move moves everything in a block.
func (b *block) move(x, y int) {
	for i := range b.steps {
		b.steps[i].X += x
		b.steps[i].Y += y
	}
	for i := range b.branches {
		b.branches[i].X += x
		b.branches[i].Y += y
	}
	for i := range b.ways {
		w := &b.ways[i]
		for j := range w.Points {
			w.Points[j].X += x
			w.Points[j].Y += y
		}
		w.LabelAt.X += x
		w.LabelAt.Y += y
	}
}

// put adds another block at a place.
func (b *block) put(other block, x, y int) {
	other.move(x, y)
	b.steps = append(b.steps, other.steps...)
	b.ways = append(b.ways, other.ways...)
	b.branches = append(b.branches, other.branches...)
}

// draw draws a list whose steps have keys with a prefix, inside of the step with the key within.
// onFailure is a further step with which the list may begin, or nil.
func (l *list) draw(within, prefix string, onFailure *step) block {
	n := newNet(l)
	for i, s := range l.steps {
		b := s.draw(prefix + s.name)
		b.steps[0].Within, b.steps[0].OnFailure = within, s == onFailure
		n.blocks[i] = b
	}
	return n.draw(onFailure)
}

// draw draws one step, with the steps inside of it.
func (s *step) draw(key string) block {
	d := core.DrawnStep{Key: key, Name: s.name, Type: s.kind.typ(), Box: core.Box{Width: stepWidth, Height: stepHeight}}
	var inner []block
	switch k := s.kind.(type) {
	case *waitStep:
		d.Note = k.note()
	case *mapStep:
		d.Note = "each of " + k.items.String()
		inner = append(inner, k.each.draw(key, key+"/*/", nil))
	case *parallelStep:
		for _, l := range k.branches {
			inner = append(inner, l.drawBranch(key))
		}
	}
	if inner == nil {
		return block{width: d.Width, height: d.Height, steps: []core.DrawnStep{d}}
	}
	x, tallest := padding, 0
	all := block{steps: []core.DrawnStep{d}}
	for _, b := range inner {
		all.put(b, x, headHeight)
		x += b.width + gapAcross
		tallest = max(tallest, b.height)
	}
	box := &all.steps[0].Box
	box.Width, box.Height = max(x-gapAcross+padding, stepWidth), headHeight+tallest+padding
	all.width, all.height = box.Width, box.Height
	return all
}

// note says how long a wait step waits.
func (k *waitStep) note() string {
	if k.until != nil {
		return "until " + k.until.String()
	}
	text := k.delay.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return "for " + text
}

// drawBranch draws a branch of the parallel step with a key. A bare branch is one step with the name of
// the branch. Other branches have a frame.
func (l *list) drawBranch(parallel string) block {
	prefix := parallel + "/" + l.name + "/"
	if l.bare {
		prefix = parallel + "/"
	}
	inner := l.draw(parallel, prefix, nil)
	for i := range inner.steps {
		if inner.steps[i].Within == parallel {
			inner.steps[i].Branch = l.name
		}
	}
	if l.bare {
		return inner
	}
	framed := block{width: inner.width + 2*padding, height: titleHeight + inner.height + padding}
	framed.branches = []core.DrawnBranch{{Name: l.name, Box: core.Box{Width: framed.width, Height: framed.height}}}
	framed.put(inner, padding, titleHeight)
	return framed
}
