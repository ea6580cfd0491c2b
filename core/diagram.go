package core

// A Diagram is the graph of the definition of a workflow, with a place for each step on a plane. Lengths
// are in pixels, from the upper left corner. A run goes from the top to the bottom.
type Diagram struct {
	Width, Height int
	Steps         []DrawnStep // a parallel or map step comes before the steps inside of it
	Ways          []Way
	Branches      []DrawnBranch
}

// A DrawnStep is a step of a definition.
type DrawnStep struct {
	// Key names the step in its definition. It is the path of its first visit, with * for the
	// index of an item: "prepare/parcels/pack/*/pack-item". See [KeyOf].
	Key    string
	Within string // key of the parallel or map step that contains it; empty for none
	Branch string // name of its branch in that step

	Name      string
	Type      string
	Note      string // how long a wait step waits, or the items of a map step; empty for others
	OnFailure bool   // a failing run continues with it

	Layer int // its row in its list, from 0
	Box
}

// A DrawnBranch is the frame of a branch that has steps with names of their own.
type DrawnBranch struct {
	Name string
	Box
}

// A Box is a rectangle.
type Box struct{ X, Y, Width, Height int }

// A WayKind says when a run takes a way.
type WayKind string

// The kinds of ways.
const (
	WayNext     WayKind = "next"     // the step succeeded
	WayChoice   WayKind = "choice"   // a condition of a choice step holds
	WayCatch    WayKind = "catch"    // the step failed with a class of errors
	WayContinue WayKind = "continue" // the step failed in any other way, and the run continues
)

// A Way leads from one step to another of the same list.
type Way struct {
	From, To string // keys
	Kind     WayKind
	Label    string // conditions, or classes of errors; empty for WayNext

	// Points are the corners of its line, from From to To. LabelAt is the middle of the line
	// of text.
	Points  []Point
	LabelAt Point
}

// A Point is a place on the plane.
type Point struct{ X, Y int }

// KeyOf returns the key in a Diagram of an executed step. The step above is the parallel or map step
// that contains it, with its key; nil for a step on the workflow's own list.
func KeyOf(s Step, above *Step, key string) string {
	switch {
	case above == nil:
		return s.Name
	case above.Type == "map":
		return key + "/*/" + s.Name
	case s.Path == above.Path+"/"+s.Branch: // a bare branch
		return key + "/" + s.Branch
	}
	return key + "/" + s.Branch + "/" + s.Name
}
