package core

// Places are the places that alerts are posted to, by the lanes in which the jobs of alerts are
// stored. Such a lane is named after a hash of the place's URL: it stays the same when the
// configuration is put in another order, and it tells nothing that a person could use. So
// places are shown under their numbers in the configuration, with their hosts. The lane of a
// place that is not configured any more is shown as it is stored.
type Places map[Lane]Place

// A Place is how a place that alerts are posted to is shown.
type Place struct {
	Lane Lane   // with its number in the configuration, from 1, such as "alert/1"
	Host string // of its URL
}

// Shown is the lane under which a lane is shown.
func (p Places) Shown(stored Lane) Lane {
	if place, ok := p[stored]; ok {
		return place.Lane
	}
	return stored
}

// Stored is the lane that is shown as another one.
func (p Places) Stored(shown Lane) Lane {
	for stored, place := range p {
		if place.Lane == shown {
			return stored
		}
	}
	return shown
}

// Job is a job as it is shown: in the lane that is shown, and with the host of its place.
func (p Places) Job(j Job) Job {
	if place, ok := p[j.Lane]; ok {
		j.Lane, j.Host = place.Lane, place.Host
	}
	return j
}

// Jobs are jobs as they are shown. The given ones stay as they are.
func (p Places) Jobs(stored []Job) []Job {
	if len(p) == 0 {
		return stored
	}
	var shown []Job
	for _, j := range stored {
		shown = append(shown, p.Job(j))
	}
	return shown
}

// Fact is a fact with the lanes and jobs of places as they are shown.
func (p Places) Fact(f Fact) Fact {
	switch f := f.(type) {
	case Settled:
		f.Job = p.Job(f.Job)
		return f
	case Superseded:
		f.Job = p.Job(f.Job)
		return f
	case BreakerMoved:
		f.Lane = p.Shown(f.Lane)
		return f
	case Revived:
		f.Lane = p.Shown(f.Lane)
		return f
	}
	return f
}
