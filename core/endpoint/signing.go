package endpoint

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// Prefixes of secrets of Standard Webhooks. A secret without a prefix is symmetric.
const (
	symmetricPrefix = "whsec_"
	privatePrefix   = "whsk_"
	publicPrefix    = "whpk_"
)

// A SigningKey is the key of a secret of Standard Webhooks. Exactly one of the fields
// Symmetric and Public is set; Private may be set beside Public.
type SigningKey struct {
	Symmetric []byte             // for version v1, HMAC-SHA256
	Private   ed25519.PrivateKey // for version v1a; nil if the secret is a public key
	Public    ed25519.PublicKey  // for version v1a
}

// Signs reports whether the key can sign. A public key can only verify.
func (k SigningKey) Signs() bool { return k.Symmetric != nil || k.Private != nil }

// Errors of secrets do not wrap the decoder's, which would quote them.
var (
	errEmptySecret = errors.New("is empty")
	errSymmetric   = errors.New("is not base64 after " + symmetricPrefix)
	errPublic      = errors.New("must have 32 bytes in base64 after " + publicPrefix)
	errPrivate     = errors.New("must have an ed25519 key in base64 after " + privatePrefix + ": 32 bytes of seed, or these and their public key")
)

// ParseSigningKey derives the key of a secret of Standard Webhooks, for signing and for
// verifying alike. A symmetric key is derived as the libraries derive it: from the base64,
// with or without padding, after "whsec_", which may be missing. The libraries have no key for
// any other text. The gateway uses the bytes of such a secret as its key, and [PlainKey]
// reports that. After "whsk_" and "whpk_" there is the private or public ed25519 key in base64.
// The error does not quote the secret.
func ParseSigningKey(secret string) (SigningKey, error) {
	if strings.TrimSpace(secret) == "" {
		return SigningKey{}, errEmptySecret
	}
	if text, ok := strings.CutPrefix(secret, privatePrefix); ok {
		return privateKey(decoded(text))
	}
	if text, ok := strings.CutPrefix(secret, publicPrefix); ok {
		key := decoded(text)
		if len(key) != ed25519.PublicKeySize {
			return SigningKey{}, errPublic
		}
		return SigningKey{Public: key}, nil
	}
	if key := decoded(strings.TrimPrefix(secret, symmetricPrefix)); key != nil {
		return SigningKey{Symmetric: key}, nil
	}
	if strings.HasPrefix(secret, symmetricPrefix) {
		return SigningKey{}, errSymmetric
	}
	return SigningKey{Symmetric: []byte(secret)}, nil
}

// privateKey makes a key pair of a seed (RFC 8032, section 5.1.5), or of a seed and its public
// key.
func privateKey(key []byte) (SigningKey, error) {
	if len(key) != ed25519.SeedSize && len(key) != ed25519.PrivateKeySize {
		return SigningKey{}, errPrivate
	}
	pair := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
	if len(key) == ed25519.PrivateKeySize && !pair.Equal(ed25519.PrivateKey(key)) {
		return SigningKey{}, errPrivate
	}
	return SigningKey{Private: pair, Public: pair.Public().(ed25519.PublicKey)}, nil
}

// PlainKey reports whether the bytes of a secret are its key, because the secret is neither
// base64 nor an ed25519 key.
func PlainKey(secret string) bool {
	key, err := ParseSigningKey(secret)
	return err == nil && string(key.Symmetric) == secret
}

// LooksHex reports whether a secret is hexadecimal, like the output of "openssl rand -hex",
// while the libraries read it as base64: all hexadecimal digits are digits of base64. So
// its key is neither its bytes nor the bytes that the hexadecimal digits stand for.
func LooksHex(secret string) bool {
	raw, err := hex.DecodeString(strings.TrimSpace(secret))
	return err == nil && len(raw) >= 16
}

// decoded returns the bytes of a text in base64, nil if it is not base64 or has no bytes.
// It accepts the texts that any of the libraries accepts. The library for Go skips line
// breaks and needs the padding. The library for JavaScript accepts texts without padding
// and ignores a superfluous digit at the end.
func decoded(text string) []byte {
	text = strings.TrimRight(strings.NewReplacer("\r", "", "\n", "").Replace(text), "=")
	if len(text)%4 == 1 && isBase64Digit(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil
	}
	return key
}

func isBase64Digit(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}
