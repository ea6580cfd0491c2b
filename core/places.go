package core

// Places maps the lanes of alerts, as stored, to the places that the alerts are posted to.
// Such a lane is named after a hash of the place's URL. So it stays the same when the
// entries of the configuration change their order. A hash means nothing to a person, so a
// place is shown under its number in the configuration, with its host. The lane of a place
// that is no longer configured is shown as it is stored.
type Places map[Lane]Place

// A Place is how a place to which alerts are posted is shown.
type Place struct {
	Lane Lane   // with its number in the configuration, from 1, such as "alert/1"
	Host string // of its URL
}

// Shown returns the lane under which a stored lane is shown.
func (p Places) Shown(stored Lane) Lane {
	if place, ok := p[stored]; ok {
		return place.Lane
	}
	return stored
}

// Stored returns the stored lane that is shown under this one.
func (p Places) Stored(shown Lane) Lane {
	for stored, place := range p {
		if place.Lane == shown {
			return stored
		}
	}
	return shown
}

// Job returns a job as it is shown: in the shown lane, and with the host of its place.
func (p Places) Job(j Job) Job {
	if place, ok := p[j.Lane]; ok {
		j.Lane, j.Host = place.Lane, place.Host
	}
	return j
}

// Jobs returns jobs as they are shown. It does not change the given jobs.
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

// Fact returns a fact with its lanes and jobs as they are shown. A fact about another lane is
// returned as it is, since facts are large and most are about handlers.
func (p Places) Fact(f Fact) Fact {
	switch fact := f.(type) {
	case Settled:
		if p.has(fact.Job.Lane) {
			fact.Job = p.Job(fact.Job)
			return fact
		}
	case Superseded:
		if p.has(fact.Job.Lane) {
			fact.Job = p.Job(fact.Job)
			return fact
		}
	case BreakerMoved:
		fact.Lane = p.Shown(fact.Lane)
		return fact
	case Revived:
		fact.Lane = p.Shown(fact.Lane)
		return fact
	}
	return f
}

func (p Places) has(stored Lane) bool {
	_, ok := p[stored]
	return ok
}
