package expr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A decimal is the exact value of a JSON number: 0.digits × 10^point, where digits begins and
// ends with another digit than 0. Zero has no digits. Equal numbers are equal decimals.
// Decimals of equal numbers are equal as Go values, so == compares them. A float64 was
// rejected: it makes 2^53 and 2^53+1 equal, which are common as ids.
type decimal struct {
	negative bool
	digits   string
	point    string // whole number in decimal, without needless zeros
}

// parseDecimal reads a JSON number. It never expands an exponent: its time and
// memory are proportional to the number's text.
func parseDecimal(n json.Number) decimal {
	s, negative := strings.CutPrefix(string(n), "-")
	// The number is cut into its parts: sign, mantissa, exponent.
	mantissa, exponent := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	// All zeros are one value, without a sign.
	if digits == "" {
		return decimal{point: "0"}
	}
	// leading zeros of the mantissa move the point to the left. Trailing zeros change only the
	// spelling.
	leading := len(whole) + len(fraction) - len(digits)
	return decimal{
		negative: negative,
		digits:   strings.TrimRight(digits, "0"),
		point:    add(exponent, len(whole)-leading),
	}
}

// compare is negative if d is less than e, positive if it is greater, 0 if they
// are equal.
func (d decimal) compare(e decimal) int {
	if bySign := d.sign() - e.sign(); bySign != 0 || d.digits == "" {
		return bySign
	}
	// Digits begin with another digit than 0, so the larger point means the larger number. With
	// the same point, the order of the digits as texts is the order of the numbers.
	size := comparePoints(d.point, e.point)
	if size == 0 {
		size = strings.Compare(d.digits, e.digits)
	}
	return size * d.sign()
}

// sign returns -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// comparePoints compares two points of decimals. They have no needless zeros, so of two
// positive points the longer text is the larger one.
func comparePoints(a, b string) int {
	m, negative := strings.CutPrefix(a, "-")
	n, alsoNegative := strings.CutPrefix(b, "-")
	switch {
	case negative && !alsoNegative:
		return -1
	case alsoNegative && !negative:
		return 1
	// Of two negative points the longer one is the smaller.
	case negative:
		m, n = n, m
	}
	if len(m) != len(n) {
		return len(m) - len(n)
	}
	return strings.Compare(m, n)
}

// integer reports whether d has no fractional part. The schema type integer uses it: 1.0 and
// 1e2 are integers.
func (d decimal) integer() bool {
	if d.digits == "" {
		return true
	}
	point, err := strconv.Atoi(d.point)
	if err != nil { // beyond any length of digits
		return d.point[0] != '-'
	}
	return point >= len(d.digits)
}

// Bounds of plain notation: whole numbers as long as a 128-bit id, and fractions
// down to a millionth, are spelled as people write them.
const (
	maxPlain = 40
	minPlain = -5
)

// appendTo appends the one spelling of d. The text is JSON. Two decimals have the same text
// only if they are equal.
func (d decimal) appendTo(b []byte) []byte {
	if d.digits == "" {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	point, err := strconv.Atoi(d.point)
	switch {
	case err != nil || point > maxPlain || point < minPlain:
		return d.appendScientific(b)
	// The point stands before the digits, with zeros between them.
	case point <= 0:
		b = append(b, "0."...)
		b = append(b, strings.Repeat("0", -point)...)
		return append(b, d.digits...)
	// The digits are followed by zeros.
	case point >= len(d.digits):
		b = append(b, d.digits...)
		return append(b, strings.Repeat("0", point-len(d.digits))...)
	}
	b = append(b, d.digits[:point]...)
	b = append(b, '.')
	return append(b, d.digits[point:]...)
}

// appendScientific writes one digit, the other digits after a point, and the exponent. The
// exponent may be longer than any int, so it stays text.
func (d decimal) appendScientific(b []byte) []byte {
	b = append(b, d.digits[0])
	if len(d.digits) > 1 {
		b = append(b, '.')
		b = append(b, d.digits[1:]...)
	}
	b = append(b, 'e')
	return append(b, add(d.point, -1)...)
}

// lowDigits is how many digits an int64 holds with room for a carry.
const lowDigits = 18

// add returns a + n for a whole number a in decimal, of any length and with or without a sign,
// and an n that is small beside 10^18. Only the last 18 digits are computed with; the digits
// before them change by at most one. So an exponent of a million digits costs no big-integer
// arithmetic.
func add(a string, n int) string {
	a = strings.TrimPrefix(a, "+")
	magnitude, negative := strings.CutPrefix(a, "-")
	magnitude = strings.TrimLeft(magnitude, "0")
	if negative {
		n = -n
	}
	split := max(0, len(magnitude)-lowDigits)
	high := magnitude[:split]
	low, _ := strconv.ParseInt("0"+magnitude[split:], 10, 64)
	low += int64(n)
	// The usual case: the exponent has at most 18 digits.
	if high == "" {
		if negative {
			low = -low
		}
		return strconv.FormatInt(low, 10)
	}
	// A carry or a borrow goes into the digits before the last 18.
	const limit = 1_000_000_000_000_000_000
	switch {
	case low >= limit:
		high, low = next(high), low-limit
	case low < 0:
		high, low = previous(high), low+limit
	}
	text := strconv.FormatInt(low, 10)
	sum := strings.TrimLeft(high+strings.Repeat("0", lowDigits-len(text))+text, "0")
	if negative {
		return "-" + sum
	}
	return sum
}

// next returns the whole number after s, which is not negative.
func next(s string) string {
	// The nines at the end become zeros, and the digit before them grows by one.
	kept := strings.TrimRight(s, "9")
	zeros := strings.Repeat("0", len(s)-len(kept))
	if kept == "" {
		return "1" + zeros
	}
	last := len(kept) - 1
	return kept[:last] + string(kept[last]+1) + zeros
}

// previous returns the whole number before s, which is positive. It may begin
// with a zero.
func previous(s string) string {
	kept := strings.TrimRight(s, "0")
	last := len(kept) - 1
	return kept[:last] + string(kept[last]-1) + strings.Repeat("9", len(s)-len(kept))
}
