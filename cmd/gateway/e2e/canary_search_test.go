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

// A canary is a secret that belongs into one place: found anywhere else, it has leaked.
type canary struct {
	name string // of its place
	text string
}

// newCanary makes a canary of letters and digits, which no format escapes. Its length needs no
// padding in base64.
func newCanary(name string) canary {
	return canary{name, strings.ToLower(rand.Text() + "z")}
}

// clue is the number of bytes at the beginning or end of a secret that count as a leak.
const clue = 12

// clues returns the texts to search for: the beginning and the end of each form in which the
// secret may be written.
func (c canary) clues() []string {
	forms := []string{c.text, strings.ToUpper(c.text), hex.EncodeToString([]byte(c.text))}
	for before := range 3 { // the text before it shifts its base64 form
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("_", before) + c.text + "__"))
		forms = append(forms, whole[4:len(whole)-4])
	}
	var all []string
	for _, f := range forms {
		all = append(all, f[:clue], f[len(f)-clue:])
	}
	return all
}

// A catch is a text that the gateway wrote or sent.
type catch struct {
	place string
	has   func(text string) bool
}

// A haul is the canaries of a test and all caught texts. It is safe for concurrent use.
type haul struct {
	mu       sync.Mutex
	canaries map[string]canary // by name
	catches  []catch
}

func newHaul() *haul { return &haul{canaries: map[string]canary{}} }

// secret returns the text of the canary with this name, and makes it if necessary.
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

// learn makes a canary of an existing secret.
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

// caught reports whether there is a catch whose place begins with begin and does not end with
// other.
func (h *haul) caught(begin, other string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.catches, func(c catch) bool {
		return strings.HasPrefix(c.place, begin) && !strings.HasSuffix(c.place, other)
	})
}

// found returns, for each canary, the distinct places that contain it.
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

// A home is a place where a canary belongs. Both may end in *, for a prefix.
type home struct{ canary, place, why string }

func (h home) has(canary, place string) bool { return fits(h.canary, canary) && fits(h.place, place) }

func fits(pattern, s string) bool {
	begin, open := strings.CutSuffix(pattern, "*")
	return s == pattern || open && strings.HasPrefix(s, begin)
}

// judge returns the leaks: canaries outside of their homes. It also returns homes without a
// canary, since they allow more than necessary.
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
			wrong = append(wrong, fmt.Sprintf("expected and not seen (no leak): a secret of %s in %s, because %s. If it does not get there any more, remove this home", h.canary, h.place, h.why))
		}
	}
	return wrong
}

// written returns an HTTP header as it is sent.
func written(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // into memory: cannot fail
	return b.String()
}

// TestHaul: search finds a secret in each form, and judge applies the homes.
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
	if got := h.judge(homes); len(got) != len(lost)-4+1 || !strings.Contains(got[len(got)-1], "a secret of queues* in hex") {
		t.Errorf("judged %q, want the four that have no home and a home that is not needed", got)
	}
}
