package verify

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"time"
)

// window is the largest permitted difference between the time in a proof and now, in
// seconds. All of the providers permit five minutes. Some accept any time in the future,
// which is refused here: such a proof would be valid for too long.
const window = 300

// maxProofs is the maximum of signatures in one header. Rotation needs two or three. A
// header full of them would make each request cost thousands of comparisons.
const maxProofs = 16

// keys are the secrets of a source as keys of an HMAC. The first one signs.
type keys [][]byte

// newKeys takes the bytes of each secret as they are, without decoding them.
func newKeys(secrets []string) keys {
	all := make(keys, len(secrets))
	for i, s := range secrets {
		all[i] = []byte(s)
	}
	return all
}

// prove reports whether one of the proofs is the MAC of the joined parts under one of the
// keys. It continues after a match, so that its time does not reveal the matching key and
// proof.
func (k keys) prove(h func() hash.Hash, proofs [][]byte, parts ...[]byte) bool {
	matched := 0
	for _, key := range k {
		want := mac(h, key, parts...)
		for _, proof := range proofs {
			matched |= subtle.ConstantTimeCompare(want, proof)
		}
	}
	return matched != 0
}

// sign returns the MAC of the parts under the first key.
func (k keys) sign(h func() hash.Hash, parts ...[]byte) []byte { return mac(h, k[0], parts...) }

// mac returns the MAC of the joined parts, without joining them in memory.
func mac(h func() hash.Hash, key []byte, parts ...[]byte) []byte {
	m := hmac.New(h, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// An encoding is how bytes are written in a header.
type encoding struct {
	name   string
	encode func([]byte) string
	decode func(string) ([]byte, error)
	length func(int) int // of that many bytes, in characters
}

// Bytes have exactly one spelling in base64 here (but two cases in hexadecimal), so that no
// byte of a header can change unnoticed.
var (
	inHex    = encoding{"hexadecimal", hex.EncodeToString, hex.DecodeString, hex.EncodedLen}
	inBase64 = encoding{"base64", base64.StdEncoding.EncodeToString, base64.StdEncoding.Strict().DecodeString, base64.StdEncoding.EncodedLen}
)

// read decodes exactly size bytes. It checks the length first, because the decoder of
// base64 skips line breaks.
func (e encoding) read(text string, size int) ([]byte, bool) {
	if len(text) != e.length(size) {
		return nil, false
	}
	proof, err := e.decode(text)
	return proof, err == nil && len(proof) == size
}

// unixNumber reads a Unix time in any unit. The text has digits only.
func unixNumber(text string) (int64, bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	t, err := strconv.ParseInt(text, 10, 64)
	return t, err == nil
}

// checkTime refuses a proof from outside the window. A sender with a wrong clock is a
// common case, so the cause gives the difference.
func checkTime(header string, t int64, now time.Time) error {
	switch n := now.Unix(); {
	case t < n-window:
		return mismatch(header, fmt.Sprintf("is from %d s ago; at most %d s are allowed", n-t, window))
	case t > n+window:
		return mismatch(header, fmt.Sprintf("is from %d s ahead; at most %d s are allowed", t-n, window))
	}
	return nil
}

// unixText returns a time in Unix seconds, as the schemes sign it.
func unixText(now time.Time) string { return strconv.FormatInt(now.Unix(), 10) }
