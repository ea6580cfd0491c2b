package preview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// Bounds of a diff. It is for people, and bodies may have 100 MiB.
const (
	maxDiffed  = 64 << 10 // bytes of a body that is compared line by line
	maxAligned = 400      // lines of a changed part that are aligned with each other
	maxLines   = 24       // lines of a diff
	maxWidth   = 160      // characters of a line
	around     = 1        // unchanged lines that are shown around a change
)

// Diff returns the difference of two bodies in lines that begin with "- ", "+ " or, for an unchanged
// line, two blanks. JSON is laid out, one member a line. There are at most some 25 lines, of at most
// some 160 characters. Bodies above 64 KiB are shown as their sizes.
func Diff(before, after []byte) []string {
	if len(before) > maxDiffed || len(after) > maxDiffed || !utf8.Valid(before) || !utf8.Valid(after) {
		return []string{fmt.Sprintf("- %d bytes", len(before)), fmt.Sprintf("+ %d bytes", len(after))}
	}
	was, is := laidOut(before), laidOut(after)
	if slices.Equal(was, is) {
		return []string{"  the same JSON, with other blanks"}
	}
	return short(near(edits(was, is)))
}

// laidOut splits a body into lines.
func laidOut(body []byte) []string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return strings.Split(string(body), "\n")
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// edits returns all lines of both texts with their marks.
func edits(was, is []string) (lines []string) {
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	lines = marked(lines, "  ", was[:head])
	lines = append(lines, align(was[head:len(was)-tail], is[head:len(is)-tail])...)
	return marked(lines, "  ", was[len(was)-tail:])
}

// marked appends lines with a mark before each.
func marked(lines []string, mark string, more []string) []string {
	for _, line := range more {
		lines = append(lines, mark+line)
	}
	return lines
}

// align returns two texts as edits with the longest common subsequence of lines.
func align(was, is []string) (lines []string) {
	if len(was) > maxAligned || len(is) > maxAligned {
		return marked(marked(nil, "- ", was), "+ ", is)
	}
	// common[i][j] is the length of the longest common subsequence of was[i:] and is[j:].
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(was) || j < len(is) {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			lines = append(lines, "  "+was[i])
			i, j = i+1, j+1
		case j == len(is) || i < len(was) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+was[i])
			i++
		default:
			lines = append(lines, "+ "+is[j])
			j++
		}
	}
	return lines
}

// near leaves out unchanged lines that are far from a change.
func near(lines []string) (kept []string) {
	last := -1
	for i, line := range lines {
		nearby := slices.ContainsFunc(lines[max(0, i-around):min(len(lines), i+around+1)], func(l string) bool { return l[0] != ' ' })
		if !nearby {
			continue
		}
		if i > last+1 && last >= 0 {
			kept = append(kept, "  …")
		}
		kept, last = append(kept, line), i
	}
	return kept
}

// short cuts a diff to its bounds.
func short(lines []string) []string {
	from := 0
	if len(lines) > 1 {
		from = sharedStart(lines)
	}
	more := len(lines) - maxLines
	if more > 0 {
		lines = lines[:maxLines]
	}
	for i, line := range lines {
		lines[i] = cut(line, from)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  … %d more lines", more))
	}
	return lines
}

// sharedStart returns how many characters all changed lines have in common at their start, if one
// of them is too long to be shown as a whole; otherwise 0.
func sharedStart(lines []string) int {
	var first []rune
	shared, long := 0, false
	for _, line := range lines {
		if line[0] == ' ' {
			continue
		}
		text := []rune(line[2:])
		long = long || len(text) > maxWidth
		if first == nil {
			first, shared = text, len(text)
			continue
		}
		n := 0
		for n < min(shared, len(text)) && text[n] == first[n] {
			n++
		}
		shared = n
	}
	if !long {
		return 0
	}
	return shared
}

// cut shortens a line to its bound. If the changed lines share a long start, it shows little of the
// start, so that the difference is seen.
func cut(line string, shared int) string {
	mark, text := line[:2], []rune(line[2:])
	start := ""
	if from := shared - maxWidth/4; from > 0 && mark != "  " && len(text) > maxWidth {
		start, text = "…", text[from:]
	}
	if len(text) > maxWidth {
		return mark + start + string(text[:maxWidth]) + "…"
	}
	return mark + start + string(text)
}

// compareLanes orders handlers before queues before workflows, each by name.
func compareLanes(a, b core.Lane) int {
	kind := func(l core.Lane) int {
		switch {
		case l.Handler() != "":
			return 0
		case l.Queue() != "":
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a, b))
}
