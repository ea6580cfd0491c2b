package workflow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// A net is the graph of one list while it is drawn: in layers, as Sugiyama, Tagawa and Toda do it
// (Methods for Visual Understanding of Hierarchical System Structures, 1981). Ways back are turned
// around first, so that each way leads down. A way over several layers passes each of them on a lane,
// which is a place like that of a step. Then the places of each layer are sorted, and moved near to
// their neighbours.
type net struct {
	list   *list
	index  map[*step]int
	blocks []block
	links  []link

	layer  []int // of each step
	layers [][]*spot
	spots  []*spot // of each step
}

// A link is all that leads from one step to another for the same reason.
type link struct {
	from, to int
	kind     core.WayKind
	labels   []string
	back     bool
	chain    []*spot // from the upper step to the lower one
}

// A spot is the place of a step, or of a lane, in a layer.
type spot struct {
	layer, width, height int
	step                 int // -1 for a lane
	above, below         []*spot
	x                    float64 // of its middle
	rank                 float64
}

func newNet(l *list) *net {
	n := &net{list: l, index: map[*step]int{}, blocks: make([]block, len(l.steps))}
	for i, s := range l.steps {
		n.index[s] = i
	}
	for i, s := range l.steps {
		n.ways(i, s)
	}
	return n
}

// ways adds the links of a step.
func (n *net) ways(i int, s *step) {
	_, fails := s.kind.(*failStep)
	if k, ok := s.kind.(*choiceStep); ok {
		for _, w := range k.ways {
			n.link(i, w.to, core.WayChoice, w.when.String())
		}
		if k.fallback != nil {
			n.link(i, k.fallback, core.WayChoice, "else")
		}
	} else if s.next != nil && !fails {
		n.link(i, s.next, core.WayNext, "")
	}
	for _, c := range s.catches {
		n.link(i, c.to, core.WayCatch, strings.Join(c.classes, ", "))
	}
	if s.proceeds && s.next != nil && !fails {
		n.link(i, s.next, core.WayContinue, "failed")
	}
}

// link adds a label to the link between two steps, and makes the link if there is none.
func (n *net) link(from int, to *step, kind core.WayKind, label string) {
	t := n.index[to]
	for i := range n.links {
		if l := &n.links[i]; l.from == from && l.to == t && l.kind == kind {
			l.labels = append(l.labels, label)
			return
		}
	}
	l := link{from: from, to: t, kind: kind}
	if label != "" {
		l.labels = []string{label}
	}
	n.links = append(n.links, l)
}

// draw places the steps and draws the ways between them. The blocks of the steps are known.
func (n *net) draw(onFailure *step) block {
	n.turnBack(onFailure)
	n.layOut()
	n.place()
	n.sort()
	n.spread()
	return n.drawn()
}

// turnBack finds the links that close a loop. A depth-first walk meets such a link when it comes to a
// step that it has not left yet.
func (n *net) turnBack(onFailure *step) {
	const under, over = 1, 2
	state := make([]int, len(n.blocks))
	var walk func(int)
	walk = func(i int) {
		state[i] = under
		for j := range n.links {
			l := &n.links[j]
			switch {
			case l.from != i:
			case state[l.to] == under:
				l.back = true
			case state[l.to] == 0:
				walk(l.to)
			}
		}
		state[i] = over
	}
	walk(0)
	if onFailure != nil && state[n.index[onFailure]] == 0 {
		walk(n.index[onFailure])
	}
	for i := range state {
		if state[i] == 0 {
			walk(i)
		}
	}
}

// ends returns the upper and the lower step of a link.
func (l *link) ends() (upper, lower int) {
	if l.back {
		return l.to, l.from
	}
	return l.from, l.to
}

// layOut gives each step a layer, one below the lowest step that leads to it.
func (n *net) layOut() {
	n.layer = make([]int, len(n.blocks))
	// Without loops no way is longer than the number of steps.
	for moved := true; moved; {
		moved = false
		for i := range n.links {
			if u, l := n.links[i].ends(); u != l && n.layer[l] <= n.layer[u] {
				n.layer[l], moved = n.layer[u]+1, true
			}
		}
	}
}

// place makes the spots of all steps and lanes.
func (n *net) place() {
	n.layers = make([][]*spot, slices.Max(n.layer)+1)
	add := func(s *spot) *spot {
		n.layers[s.layer] = append(n.layers[s.layer], s)
		return s
	}
	for i, b := range n.blocks {
		n.spots = append(n.spots, add(&spot{layer: n.layer[i], width: b.width, height: b.height, step: i}))
	}
	for i := range n.links {
		l := &n.links[i]
		u, v := l.ends()
		if u == v {
			continue
		}
		l.chain = []*spot{n.spots[u]}
		for k := n.layer[u] + 1; k < n.layer[v]; k++ {
			l.chain = append(l.chain, add(&spot{layer: k, width: laneWidth, step: -1}))
		}
		l.chain = append(l.chain, n.spots[v])
		for j, s := range l.chain[1:] {
			s.above = append(s.above, l.chain[j])
			l.chain[j].below = append(l.chain[j].below, s)
		}
	}
}

// sort sorts the spots of each layer by the mean place of their neighbours, first from the top to the
// bottom and then back, some times. The first step of the list stands at the left at first.
func (n *net) sort() {
	number := func(layer []*spot) {
		for i, s := range layer {
			s.x = float64(i)
		}
	}
	for _, layer := range n.layers {
		number(layer)
	}
	pass := func(layer []*spot, near func(*spot) []*spot) {
		for _, s := range layer {
			s.rank = mean(near(s), s.x)
		}
		slices.SortStableFunc(layer, func(a, b *spot) int { return cmp.Compare(a.rank, b.rank) })
		number(layer)
	}
	for range 4 {
		for _, layer := range n.layers {
			pass(layer, func(s *spot) []*spot { return s.above })
		}
		for _, layer := range slices.Backward(n.layers) {
			pass(layer, func(s *spot) []*spot { return s.below })
		}
	}
}

// mean returns the mean x of spots, or otherwise if there is none.
func mean(spots []*spot, otherwise float64) float64 {
	if len(spots) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, s := range spots {
		sum += s.x
	}
	return sum / float64(len(spots))
}

// spread gives the spots of each layer their x, as near to their neighbours as their widths allow.
func (n *net) spread() {
	for _, layer := range n.layers {
		x := 0.0
		for _, s := range layer {
			s.x = x + float64(s.width)/2
			x += float64(s.width) + gapAcross
		}
		for _, s := range layer { // the layers have one middle
			s.x -= (x - gapAcross) / 2
		}
	}
	for range 12 {
		for _, layer := range n.layers {
			settle(layer, func(s *spot) []*spot { return s.above })
		}
		for _, layer := range slices.Backward(n.layers) {
			settle(layer, func(s *spot) []*spot { return s.below })
		}
	}
	for _, layer := range n.layers {
		settle(layer, func(s *spot) []*spot { return slices.Concat(s.above, s.below) })
	}
}

// settle moves the spots of a layer to the middle of their neighbours. Where two of them would overlap,
// each gives way by half.
func settle(layer []*spot, near func(*spot) []*spot) {
	right, left := make([]float64, len(layer)), make([]float64, len(layer))
	for i, s := range layer {
		right[i] = mean(near(s), s.x)
	}
	copy(left, right)
	apart := func(a, b *spot) float64 { return float64(a.width+b.width)/2 + gapAcross }
	for i := 1; i < len(layer); i++ {
		right[i] = max(right[i], right[i-1]+apart(layer[i-1], layer[i]))
	}
	for i := len(layer) - 2; i >= 0; i-- {
		left[i] = min(left[i], left[i+1]-apart(layer[i], layer[i+1]))
	}
	for i, s := range layer {
		s.x = (left[i] + right[i]) / 2
	}
}
