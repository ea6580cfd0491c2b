package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
)

// A recorder makes the exchanges that attempts keep. It masks the secrets that it knows:
//
//   - the value of each header that the configuration gives a handler or step, since these values
//     often are tokens. The exceptions are Accept and Content-Type.
//   - the value of a header of either side whose name says that it is a credential, see
//     [endpoint.IsCredential].
//   - the values of the URL's query, and a URL that is a secret as a whole except for its host.
//   - the same texts, and the keys of signatures, wherever else they occur, such as in a header of
//     a reply that repeats the request. Texts with fewer than minHidden bytes are not searched:
//     they occur by chance.
//
// A signature is kept. It proves that this one request came from the gateway, which the receiver
// knows by its id and time.
//
// A nil recorder records nothing.
type recorder struct {
	bodies    bool            // keeps bodies that are not the payload
	secretURL bool            // the URL is a secret, except for its host
	own       map[string]bool // the lower-case names of configured headers that are masked
	hidden    []string        // texts to mask wherever they occur, the longest first
}

// minHidden is how many bytes a secret has at least that is masked wherever it occurs.
const minHidden = 6

// openHeaders are configured headers that are no secrets.
var openHeaders = []string{"accept", "content-type"}

// newRecorder returns the recorder for requests with these headers and secrets of the
// configuration; nil if nothing is recorded.
func newRecorder(how core.Recording, headers map[string]string, secrets []string) *recorder {
	if how != core.RecordHeaders && how != core.RecordAll {
		return nil
	}
	r := &recorder{bodies: how == core.RecordAll, own: map[string]bool{}}
	r.hide(secrets...)
	return r.with(headers)
}

// with returns a recorder that masks further configured headers.
func (r *recorder) with(headers map[string]string) *recorder {
	if r == nil || len(headers) == 0 {
		return r
	}
	more := &recorder{bodies: r.bodies, secretURL: r.secretURL, own: maps.Clone(r.own), hidden: slices.Clone(r.hidden)}
	for name, value := range headers {
		if name = strings.ToLower(name); slices.Contains(openHeaders, name) {
			continue
		}
		more.own[name] = true
		more.hideValue(value)
	}
	return more
}

// hideValue hides the value of a configured header.
func (r *recorder) hideValue(value string) {
	r.hide(value)
	if _, token, found := strings.Cut(strings.TrimSpace(value), " "); found { // Bearer and a token
		r.hide(token)
	}
}

// hideOwn hides the values of configured headers as they are sent, where that is in another spelling.
func (r *recorder) hideOwn(sent map[string][]string) {
	if r == nil {
		return
	}
	for name, values := range sent {
		for _, value := range values {
			if r.own[name] {
				r.hideValue(value)
			}
		}
	}
}

// hide adds texts that are masked wherever they occur.
func (r *recorder) hide(texts ...string) {
	for _, text := range texts {
		if text = strings.TrimSpace(text); len(text) >= minHidden && !slices.Contains(r.hidden, text) {
			r.hidden = append(r.hidden, text)
		}
	}
	slices.SortFunc(r.hidden, func(a, b string) int { return len(b) - len(a) })
}

// delivered returns the exchange of a delivery; see sent.
func (r *recorder) delivered(d *delivery, made bool) *core.Exchange {
	if r == nil {
		return nil
	}
	return r.sent(d.method, d.url, d.header(), d.payload, made)
}

// sent returns the exchange of a request. made says that the body is not the event's payload.
func (r *recorder) sent(method string, u *url.URL, header map[string][]string, body []byte, made bool) *core.Exchange {
	if r == nil {
		return nil
	}
	x := &core.Exchange{Method: method}
	r = r.forURL(u)
	x.URL, x.Cut = r.url(u)
	var cut bool
	x.Headers, cut = r.headers(header)
	x.Cut = x.Cut || cut
	x.Unmasked = r.unmasked(u, header, x.Headers)
	if len(body) == 0 {
		return x
	}
	sum := sha256.Sum256(body)
	x.BodySize, x.BodySHA256 = len(body), hex.EncodeToString(sum[:])
	if r.bodies && made && readable(body) {
		n := min(len(body), core.MaxSentBody)
		for n < len(body) && !utf8.RuneStart(body[n]) {
			n--
		}
		// A transform may contain a secret. A body that is masked is shorter, so it counts as cut.
		x.Body = r.mask(string(body[:n]))
		x.KeptBody = len(x.Body)
	}
	return x
}

// answered adds the headers of a reply to the exchange of its request.
func (r *recorder) answered(x *core.Exchange, u *url.URL, header map[string][]string) {
	if r == nil || x == nil {
		return
	}
	var cut bool
	x.ReplyHeaders, cut = r.forURL(u).headers(header)
	x.Cut = x.Cut || cut
}

// forURL returns a recorder that masks the secrets of a URL as well.
func (r *recorder) forURL(u *url.URL) *recorder {
	if u.RawQuery == "" && !r.secretURL {
		return r
	}
	more := *r
	more.hidden = slices.Clone(r.hidden)
	if r.secretURL {
		more.hide(strings.TrimPrefix(u.EscapedPath(), "/"), strings.TrimPrefix(u.Path, "/"))
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, found := strings.Cut(pair, "=")
		if !found {
			value = pair
		}
		more.hide(value)
		if plain, err := url.QueryUnescape(value); err == nil {
			more.hide(plain)
		}
	}
	return &more
}

// unmasked returns the value of [core.Exchange.Unmasked] for a request with these kept headers.
func (r *recorder) unmasked(u *url.URL, header map[string][]string, kept map[string]string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(header)) {
		full := strings.Join(header[key], ", ")
		if _, is := kept[key]; is && !r.masksValue(key) && strings.Contains(full, core.Masked) && r.mask(full) == full {
			names = append(names, key)
		}
	}
	// Values of the query are masked always, and names are never.
	text := u.EscapedPath()
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		text += "&" + name
	}
	if !r.secretURL && strings.Contains(text, core.Masked) && r.mask(text) == text {
		names = append(names, core.UnmaskedURL)
	}
	return names
}

// masksValue reports whether the whole value of a header is masked.
func (r *recorder) masksValue(key string) bool {
	return r.own[strings.ToLower(key)] || endpoint.IsCredential(key)
}

// url returns a URL as it is kept, and whether it was cut.
func (r *recorder) url(u *url.URL) (kept string, cut bool) {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	switch {
	case r.secretURL:
		path = "/" + core.Masked
	case u.RawQuery != "":
		pairs := strings.Split(u.RawQuery, "&")
		for i, pair := range pairs {
			if name, _, found := strings.Cut(pair, "="); found {
				pairs[i] = name + "=" + core.Masked
			} else {
				pairs[i] = core.Masked
			}
		}
		path = r.mask(path) + "?" + strings.Join(pairs, "&")
	}
	full := u.Scheme + "://" + u.Host + r.mask(path)
	return clean(full, core.MaxSentURL), len(full) > core.MaxSentURL
}

// mask masks the hidden texts in a text.
func (r *recorder) mask(text string) string {
	for _, secret := range r.hidden {
		text = strings.ReplaceAll(text, secret, core.Masked)
	}
	return text
}

// headers returns the headers of one side as they are kept, and whether some were cut.
func (r *recorder) headers(header map[string][]string) (kept map[string]string, cut bool) {
	kept = make(map[string]string, len(header))
	room := core.MaxHeaders
	for _, key := range slices.Sorted(maps.Keys(header)) {
		value := core.Masked
		// A value that has the mask as a text and a secret beside it is masked whole: a reader could not
		// distinguish the two.
		if full := strings.Join(header[key], ", "); !r.masksValue(key) && (!strings.Contains(full, core.Masked) || r.mask(full) == full) {
			full = r.mask(full)
			value = clean(full, core.MaxHeaderValue)
			cut = cut || len(value) < len(full)
		}
		name := clean(r.mask(key), core.MaxHeaderValue)
		if room -= len(name) + len(value); room < 0 {
			return kept, true
		}
		kept[name] = value
	}
	return kept, cut
}
