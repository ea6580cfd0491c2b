package main

import (
	"fmt"
	"strings"
)

// maxRate is the bound on the broad markers per 1,000 words, in the whole repository. Some markers
// are the plainest way to say a thing, so the bound is not 0.
const maxRate = 0.3

// shownFiles is how many of the worst files a failure names.
const shownFiles = 10

// tooMany returns the failure of a test if the rate of the texts is not below a bound: the rate,
// the worst files, and the command that shows their sentences. It returns "" below the bound.
func tooMany(texts []text, bound float64) string {
	files, total := tallies(texts)
	rate := perThousand(total.broad, total.words)
	if rate < bound {
		return ""
	}
	var list, names []string
	for _, f := range files[:min(shownFiles, len(files))] {
		if f.broad > 0 {
			name := strings.TrimPrefix(f.name, root+"/")
			list = append(list, fmt.Sprintf("\n%4d %s", f.broad, name))
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%.2f of 1,000 words of the comments and documents are markers; the rate must be below %.2f.\n"+
		"A marker hides the actor or the subject of a sentence, such as \"what\", \"nobody\" or \"those that\".\n"+
		"Rewrite sentences of the files with the most markers:%s\n"+
		"To see the sentences, run in the root of the repository:\n  go run ./infra/words -show %s",
		rate, bound, strings.Join(list, ""), strings.Join(names, " "))
}

// root is the root of the repository, from the folder of this package.
const root = "../.."
