package main

import (
	"regexp"
	"slices"
	"strings"
)

// A marker is a word or phrase that often makes a sentence hard to understand.
type marker struct {
	word string

	// attached says that the marker is a "who" right behind a noun for a person, as in "a
	// caller who waits". Such a clause has an antecedent. The broad count has it all the
	// same; the narrow count leaves it out.
	attached bool
}

// phrases are the markers, except that [attachedWho] is asked about each "who".
var phrases = regexp.MustCompile(`(?i)\b(?:` + strings.Join([]string{
	// A clause without a noun: "What is due is taken", "who waits is woken".
	`what`, `who`, `whom`,
	// An actor without a name.
	`nobody`, `somebody`, `anybody`, `everybody`, `no one`, `whoever`, `whomever`, `whichever`, `whatever`,
	// A pronoun with a clause in place of a noun: "those that wait", "the one that runs".
	`those (?:who|that|which|whose)`, `the ones? (?:who|that|which|whose|whom)`,
	`(?:is|are|was|were|be) (?:that|those) of`,
	// A message without a sender or a text: "the worker is told", "it tells of events".
	`(?:is|are|was|were|be|been|being|not) told`, `(?:tells?|told) of`,
}, `|`) + `)\b`)

// hints are texts of which each marker has one, in lower case. To look for them first makes the
// count of the whole repository twice as fast, since few sentences have any.
var hints = []string{"what", "who", "whichever", "body", "no one", "those", "the one", "that of", "told", "tell"}

// attachedWho finds a "who" with an antecedent.
var attachedWho = regexp.MustCompile(`(?i)\b(?:callers?|senders?|operators?|users?|readers?|clients?|consumers?|attackers?|person|people|persons|administrators?|developers?|maintainers?|reviewers?|contributors?)(?: \w+)? whom?$`)

// quoted finds words that a sentence mentions and does not use.
var quoted = regexp.MustCompile(`"[^"]*"|“[^”]*”`)

// markersIn finds the markers of a sentence. Of markers that overlap it finds the first, so
// "those who wait" counts once. Quoted words do not count. A question has no markers: there
// "what" and "who" ask.
func markersIn(sentence string) []marker {
	lower := strings.ToLower(sentence)
	hinted := slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) })
	if !hinted || strings.HasSuffix(sentence, "?") {
		return nil
	}
	sentence = quoted.ReplaceAllString(sentence, `""`)
	var found []marker
	for _, at := range phrases.FindAllStringIndex(sentence, -1) {
		m := marker{word: strings.ToLower(sentence[at[0]:at[1]])}
		m.attached = strings.HasPrefix(m.word, "who") && attachedWho.MatchString(sentence[:at[1]])
		found = append(found, m)
	}
	return found
}
