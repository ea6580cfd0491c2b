package workflow

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// The last part of drawing a list: the places become pixels, and the links lines.

// drawn returns the drawing of a list whose spots have their places.
func (n *net) drawn() block {
	left, right := math.Inf(1), math.Inf(-1)
	for _, layer := range n.layers {
		for _, s := range layer {
			left = min(left, s.x-float64(s.width)/2)
			right = max(right, s.x+float64(s.width)/2)
		}
	}
	tops, bottoms := n.rows()
	all := block{width: int(math.Round(right - left)), height: bottoms[len(bottoms)-1]}
	for _, l := range n.links {
		if l.from == l.to { // its line is beside the step
			all.width += gapAcross
			break
		}
	}
	for i, b := range n.blocks {
		b.steps[0].Layer = n.layer[i]
		all.put(b, int(math.Round(n.spots[i].x-left))-b.width/2, tops[n.layer[i]])
	}
	ports := n.ports()
	labels := map[int]int{} // of each step to which ways lead
	for i := range n.links {
		w := n.line(i, ports, left, tops, bottoms)
		if w.Label != "" {
			w.LabelAt = labelAt(w.Points, labels[n.links[i].to])
			labels[n.links[i].to]++
		}
		all.ways = append(all.ways, w)
	}
	return all
}

// rows returns the top and the bottom of each layer.
func (n *net) rows() (tops, bottoms []int) {
	labeled := make([]int, len(n.layers)) // labels just above each layer
	for _, l := range n.links {
		if len(l.labels) == 0 || l.from == l.to {
			continue
		}
		at := n.layer[l.to]
		if l.back {
			at++
		}
		labeled[at] = 1
	}
	y := 0
	for k, layer := range n.layers {
		if k > 0 {
			y += gapDown + labeled[k]*gapLabeled
		}
		tallest := 0
		for _, s := range layer {
			tallest = max(tallest, s.height)
		}
		tops, bottoms = append(tops, y), append(bottoms, y+tallest)
		y += tallest
	}
	return tops, bottoms
}

// A port is the end of a link at a step.
type port struct {
	link  int
	lower bool // at the lower step of the link
}

// ports returns how far each end of a link is from the middle of its step. The ends at one side of a
// step are in the order of the places to which the links lead.
func (n *net) ports() map[port]float64 {
	sides := map[*spot][2][]port{} // below, above
	toward := map[port]float64{}
	for i, l := range n.links {
		if len(l.chain) == 0 {
			continue
		}
		out, in := port{i, false}, port{i, true}
		first, last := l.chain[0], l.chain[len(l.chain)-1]
		toward[out], toward[in] = l.chain[1].x, l.chain[len(l.chain)-2].x
		side := sides[first]
		side[0] = append(side[0], out)
		sides[first] = side
		side = sides[last]
		side[1] = append(side[1], in)
		sides[last] = side
	}
	away := map[port]float64{}
	for s, both := range sides {
		for _, side := range both {
			order.Stable(side, func(a, b port) int { return cmp.Compare(toward[a], toward[b]) })
			gap := min(portGap, float64(s.width)/float64(len(side)+1))
			for i, p := range side {
				away[p] = (float64(i) - float64(len(side)-1)/2) * gap
			}
		}
	}
	return away
}

// line returns the way of a link.
func (n *net) line(i int, ports map[port]float64, left float64, tops, bottoms []int) core.Way {
	l := n.links[i]
	w := core.Way{From: n.key(l.from), To: n.key(l.to), Kind: l.kind, Label: strings.Join(l.labels, "; ")}
	pixel := func(x float64) int { return int(math.Round(x - left)) }
	if len(l.chain) == 0 { // a step that leads to itself
		s := n.spots[l.from]
		x, y := pixel(s.x+float64(s.width)/2), tops[s.layer]
		w.Points = []core.Point{point(x, y+s.height*2/3), point(x, y+s.height/3)}
		return w
	}
	for j, s := range l.chain {
		x := s.x
		if j == 0 {
			x += ports[port{i, false}]
			w.Points = append(w.Points, point(pixel(x), tops[s.layer]+s.height))
		} else {
			if j == len(l.chain)-1 {
				x += ports[port{i, true}]
			}
			w.Points = append(w.Points, point(pixel(x), tops[s.layer]))
		}
		// A lane goes down to the end of its layer, and a line from a step as far as its taller neighbours.
		if last := w.Points[len(w.Points)-1]; j < len(l.chain)-1 && last.Y < bottoms[s.layer] {
			w.Points = append(w.Points, point(last.X, bottoms[s.layer]))
		}
	}
	if l.back {
		slices.Reverse(w.Points)
	}
	return w
}

// key returns the key of a step of the list.
func (n *net) key(i int) string { return n.blocks[i].steps[0].Key }

func point(x, y int) core.Point { return core.Point{X: x, Y: y} }

// labelAt returns the place of a label near the end of a line, the nth label near this end. There
// the lines of one step are farthest from each other.
func labelAt(points []core.Point, nth int) core.Point {
	last, before := points[len(points)-1], points[len(points)-2]
	if last.Y < before.Y { // from below, or beside the step
		return point(last.X, last.Y+24+13*nth)
	}
	return point(last.X, last.Y-14-13*nth)
}
