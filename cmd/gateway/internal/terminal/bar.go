package terminal

import "strings"

// barWidth is the number of characters of a bar without its ends.
const barWidth = 20

// Bar returns a bar that shows how much is done, in ASCII. It is full only if done is total or more.
func Bar(done, total int) string {
	full := barWidth
	if done < total {
		full = max(0, done) * barWidth / total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}
