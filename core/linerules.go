package core

// LineRules are the settings of the lines of a lane. A lane without lines has the zero value.
type LineRules struct {
	// Limit is how many jobs of a line are admitted at a time; 0 if the lane has no lines.
	Limit int

	// StopOnDead says that a job that becomes dead stops its line.
	StopOnDead bool
}

// Apply returns the outcome of a job with the line of the job. A job that entered its line before
// the configuration of its lane changed ends under the rules that the lane has now.
func (r LineRules) Apply(j Job, o Outcome) Outcome {
	if j.Line != "" {
		o.Line = Line{Key: j.Line, Limit: r.Limit}
		o.StopsLine = o.Status == Dead && r.Limit > 0 && r.StopOnDead
	}
	return o
}

// PassesSlot reports whether the job gives its slot to the next job of its line, which is then due.
func (o Outcome) PassesSlot() bool {
	keeps := o.StopsLine || o.Status == Retryable && o.Line.Limit == 1
	return o.Line.Key != "" && !keeps
}
