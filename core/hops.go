package core

import "strconv"

// Hops is the header that counts how many gateways have passed an event on. A delivery
// carries the count of its event plus one. An event keeps the count of the delivery by
// which it arrived. The count ends loops: of a gateway that delivers to itself, and of
// several gateways in a ring.
const Hops = "x-gateway-hops"

// HopsHeader is Hops in the spelling of net/http.
const HopsHeader = "X-Gateway-Hops"

// MaxHops is how many gateways may pass an event on. A chain of gateways has a few hops; a
// loop has no end.
const MaxHops = 16

// ParseHops reads a count of hops. A count has only digits. For a count that an int cannot
// hold it returns a number above MaxHops. For any other text it returns false.
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

// NextHop returns the count for deliveries of the event: at most MaxHops + 1.
func (e *Event) NextHop() string {
	n, _ := ParseHops(e.Headers[Hops])
	return strconv.Itoa(min(n, MaxHops) + 1)
}
