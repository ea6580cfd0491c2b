//go:build linux

package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A canary is a secret that is in one place only: wherever else it is found, it got out.
type canary struct {
	name string // of the place it was put into
	text string
}

// newCanary makes one. It is of letters and digits, which nothing that is written has to
// escape, and of a length that base64 needs not fill up.
func newCanary(name string) canary {
	return canary{name, strings.ToLower(rand.Text() + "z")}
}

// clue is how much of a secret gives it away, in bytes: nobody may print its beginning,
// or its end, either.
const clue = 12

// clues are what is searched for: the beginning and the end of each form that a secret may
// be written in.
func (c canary) clues() []string {
	forms := []string{c.text, strings.ToUpper(c.text), hex.EncodeToString([]byte(c.text))}
	for before := range 3 { // what stands before it shifts how base64 writes it
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("_", before) + c.text + "__"))
		forms = append(forms, whole[4:len(whole)-4])
	}
	var all []string
	for _, f := range forms {
		all = append(all, f[:clue], f[len(f)-clue:])
	}
	return all
}

// A catch is something that the gateway wrote, said or sent.
type catch struct {
	place string
	has   func(text string) bool
}

// A haul is all that was caught. It is safe for concurrent use.
type haul struct {
	mu       sync.Mutex
	canaries map[string]canary // by name
	catches  []catch
}

func newHaul() *haul { return &haul{canaries: map[string]canary{}} }

// secret is the text of the canary of a name, which is made when it is first asked for.
func (h *haul) secret(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.canaries[name]
	if !ok {
		c = newCanary(name)
		h.canaries[name] = c
	}
	return c.text
}

// learn makes a canary of a secret that somebody else made.
func (h *haul) learn(name, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.canaries[name] = canary{name, text}
}

func (h *haul) add(place, text string) {
	h.addSearch(place, func(clue string) bool { return strings.Contains(text, clue) })
}

func (h *haul) addSearch(place string, has func(string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.catches = append(h.catches, catch{place, has})
}

// caught reports whether there is something of a place that begins so, beside another one.
func (h *haul) caught(begin, other string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.catches, func(c catch) bool {
		return strings.HasPrefix(c.place, begin) && !strings.HasSuffix(c.place, other)
	})
}

// found are the places where each canary is, each once.
func (h *haul) found() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]string{}
	for _, c := range h.canaries {
		clues := c.clues()
		for _, in := range h.catches {
			if slices.ContainsFunc(clues, in.has) {
				all[c.name] = append(all[c.name], in.place)
			}
		}
		slices.Sort(all[c.name])
		all[c.name] = slices.Compact(all[c.name])
	}
	return all
}

// A home is a place where a canary belongs. Both may end in *, for all that begin so.
type home struct{ canary, place, why string }

func (h home) has(canary, place string) bool { return fits(h.canary, canary) && fits(h.place, place) }

func fits(pattern, s string) bool {
	begin, open := strings.CutSuffix(pattern, "*")
	return s == pattern || open && strings.HasPrefix(s, begin)
}

// judge returns what is wrong: canaries where they do not belong, and homes that none
// was in, which therefore allow what nobody needs.
func (h *haul) judge(homes []home) (wrong []string) {
	used := map[home]bool{}
	found := h.found()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, place := range found[name] {
			i := slices.IndexFunc(homes, func(h home) bool { return h.has(name, place) })
			if i < 0 {
				wrong = append(wrong, fmt.Sprintf("the secret of %s is in %s", name, place))
				continue
			}
			used[homes[i]] = true
		}
	}
	for _, h := range homes {
		if !used[h] {
			wrong = append(wrong, fmt.Sprintf("no secret of %s is in %s, where it may be because %s", h.canary, h.place, h.why))
		}
	}
	return wrong
}

// written is an HTTP header as it goes over the wire.
func written(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // into memory
	return b.String()
}

// TestHaul: a secret is found however it is written, and its homes are judged.
func TestHaul(t *testing.T) {
	t.Parallel()
	h := newHaul()
	secret := h.secret("api.auth_token")
	lost := map[string]string{
		"plain":     "token=" + secret + "&",
		"beginning": secret[:clue] + "...",
		"end":       "..." + secret[len(secret)-clue:],
		"capitals":  strings.ToUpper(secret),
		"hex":       hex.EncodeToString([]byte("x" + secret)),
		"basic 0":   base64.StdEncoding.EncodeToString([]byte("use:" + secret + "!")),
		"basic 1":   base64.URLEncoding.EncodeToString([]byte("user:" + secret)),
		"basic 2":   base64.RawStdEncoding.EncodeToString([]byte("users:" + secret)),
	}
	for place, text := range lost {
		h.add(place, text)
	}
	h.add("harmless", secret[:clue-1]+" "+secret[len(secret)-clue+1:])
	if got, want := h.found()["api.auth_token"], slices.Sorted(maps.Keys(lost)); !slices.Equal(got, want) {
		t.Errorf("found in %q, want %q", got, want)
	}
	homes := []home{{"api.*", "basic*", "of the test"}, {"api.auth_token", "hex", "of the test"}, {"queues*", "hex", "of the test"}}
	if got := h.judge(homes); len(got) != len(lost)-4+1 || !strings.Contains(got[len(got)-1], "no secret of queues* is in hex") {
		t.Errorf("judged %q, want the four that have no home and a home that is not needed", got)
	}
}
