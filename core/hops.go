package core

import "strconv"

// Hops is the header that counts how many gateways have handed an event on: of what they
// deliver, and, among an event's own, of the delivery that it came by. It ends loops, of a
// gateway that delivers to itself or of several in a ring.
const Hops = "x-gateway-hops"

// MaxHops is how often an event may be handed on. A chain of gateways is a few; a loop has
// no end.
const MaxHops = 16

// ParseHops reads a count of hops: digits alone. For a count that an int cannot hold
// it returns some number above MaxHops. For any other text it returns false.
func ParseHops(text string) (int, bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	if text == "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		n = MaxHops + 1
	}
	return n, true
}

// NextHop is the count that goes with what an event gives rise to.
func (e *Event) NextHop() string {
	n, _ := ParseHops(e.Headers[Hops])
	return strconv.Itoa(min(n, MaxHops) + 1)
}
