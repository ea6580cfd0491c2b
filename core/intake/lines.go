package intake

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Lines say in which line of its lane each job of a consumer takes a place. The zero value is for
// a consumer without lines.
type Lines struct {
	// Key finds the value that names the line of a job.
	Key *expr.Path

	// Limit is how many jobs of one line are admitted at a time, 1 to [core.MaxLineLimit].
	Limit int
}

// line returns the line of the job for a payload. Text is taken as it is, so the number 7 and
// the text "7" are in the same line. The job is in no line if the value is missing, null, an empty
// text, an object or an array.
//
// Characters outside Unicode are equal once decoded, so values that differ in nothing else share
// a line. For an idempotency key such values count as none, since events would be lost. Here one
// line too few keeps the order, and no line would not.
func (l Lines) line(d *expr.Document) core.Line {
	line := core.Line{Limit: l.Limit}
	if l.Key == nil {
		return line
	}
	v, _ := d.One(l.Key)
	switch v := v.(type) {
	case nil, map[string]any, []any:
		return line
	case string:
		line.Key = v
	default:
		line.Key = expr.Canonical(v)
	}
	line.Key = bounded(line.Key)
	return line
}
