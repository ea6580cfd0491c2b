package workflow

import (
	"fmt"
	"strings"
)

// Graph returns the workflow as a Mermaid flowchart
// (https://mermaid.js.org/syntax/flowchart.html). Steps have the shapes of their types.
// Parallel and map steps are boxes around their branches. Ways that a run takes after a
// failure are dotted. The ids of nodes are generated, so that any name and any condition
// can be shown.
func (d *Definition) Graph() string {
	g := &graph{ids: map[*step]string{}}
	g.b.WriteString("flowchart TD\n")
	// Mermaid places nodes in the order in which they appear.
	g.line(`begin((" "))`)
	g.list(d.top)
	g.line("begin --> %s", g.ids[d.top.steps[0]])
	if d.onFailure != nil {
		g.line(`failed(("failed"))`)
		g.line("failed -.-> %s", g.ids[d.onFailure])
	}
	if g.ends {
		g.line(`done(((" ")))`)
	}
	return g.b.String()
}

// A graph is one drawing under way.
type graph struct {
	b     strings.Builder
	depth int
	ids   map[*step]string
	boxes int
	inner int  // lists that are being drawn
	ends  bool // some step is the last one
}

// line writes a line at the present depth.
func (g *graph) line(format string, args ...any) {
	g.b.WriteString(strings.Repeat("    ", g.depth+1))
	fmt.Fprintf(&g.b, format+"\n", args...)
}

// box writes a subgraph around the lines that draw writes.
func (g *graph) box(id, title string, draw func()) {
	g.line(`subgraph %s["%s"]`, id, label(title))
	g.depth++
	draw()
	g.depth--
	g.line("end")
}

// list draws the steps of a list and then the ways between them.
func (g *graph) list(l *list) {
	g.inner++
	for _, s := range l.steps {
		g.ids[s] = fmt.Sprintf("s%d", len(g.ids)+1)
		g.node(s)
	}
	g.inner--
	for _, s := range l.steps {
		g.ways(s)
	}
}

// node draws one step in the shape of its type.
func (g *graph) node(s *step) {
	id := g.ids[s]
	switch k := s.kind.(type) {
	// A bare branch is one node. Other branches are boxes with their names.
	case *parallelStep:
		g.box(id, s.name+": all of", func() {
			for _, l := range k.branches {
				if l.bare {
					g.list(l)
					continue
				}
				g.boxes++
				g.box(fmt.Sprintf("b%d", g.boxes), l.name, func() { g.list(l) })
			}
		})
	// All items share one drawing.
	case *mapStep:
		g.box(id, s.name+": each of "+k.items.String(), func() { g.list(k.each) })
	case *choiceStep:
		g.line(`%s{"%s"}`, id, label(s.name))
	case *waitStep:
		g.line(`%s(["%s<br>%s"])`, id, label(s.name), label(k.shown()))
	case *failStep:
		g.line(`%s{{"%s<br>fails"}}`, id, label(s.name))
	case *callbackStep:
		g.line(`%s[/"%s"/]`, id, label(s.name))
	default:
		g.line(`%s["%s"]`, id, label(s.name))
	}
}

// shown says in words until when a wait step waits. It is part of the node's label.
func (k *waitStep) shown() string {
	if k.until != nil {
		return "until " + k.until.String()
	}
	return "wait " + k.delay.String()
}

// ways draws where a step may go. It draws the end of the workflow, but not the end of a
// branch.
func (g *graph) ways(s *step) {
	from := g.ids[s]
	// The conditions label the ways. Other steps have at most one way without a label.
	if k, ok := s.kind.(*choiceStep); ok {
		for _, w := range k.ways {
			g.line(`%s -->|"%s"| %s`, from, label(w.when.String()), g.ids[w.to])
		}
		if k.fallback != nil {
			g.line(`%s -->|"else"| %s`, from, g.ids[k.fallback])
		}
	} else if _, fails := s.kind.(*failStep); fails {
		return
	} else if to := g.after(s); to != "" {
		g.line("%s --> %s", from, to)
	}
	// Each entry of catch is a dotted way with its classes.
	for _, c := range s.catches {
		g.line(`%s -.->|"%s"| %s`, from, label(strings.Join(c.classes, ", ")), g.ids[c.to])
	}
	// on_failure: continue leads to the same step as a success.
	if to := g.after(s); s.proceeds && to != "" {
		g.line(`%s -.->|"failed"| %s`, from, to)
	}
}

// after returns the id of the step after s, or of the end of the workflow. It is empty at the
// end of a branch.
func (g *graph) after(s *step) string {
	switch {
	case s.next != nil:
		return g.ids[s.next]
	case g.inner == 0:
		g.ends = true
		return "done"
	}
	return ""
}

// label returns text in quotes. It writes quotes and Mermaid's markup characters as numeric
// entities.
func label(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"#<>&;`\\", r) || r < ' ' {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
