package endpoint

import (
	"encoding/base64"
	"errors"
	"strings"
)

const keyPrefix = "whsec_"

// SigningKey is the key of a secret of Standard Webhooks, as its libraries derive it: the
// base64, with or without padding, after "whsec_", which may be missing. A secret that is
// neither has no key for these libraries; here its own bytes are the key, as [PlainKey]
// tells. The error does not quote the secret.
func SigningKey(secret string) ([]byte, error) {
	if strings.TrimSpace(secret) == "" {
		return nil, errors.New("is empty")
	}
	key, ok := decodedKey(secret)
	switch {
	case ok:
		return key, nil
	case strings.HasPrefix(secret, keyPrefix):
		return nil, errors.New("is not base64 after whsec_")
	}
	return []byte(secret), nil
}

// PlainKey reports whether the bytes of a secret are its key, since it is no base64.
func PlainKey(secret string) bool {
	_, ok := decodedKey(secret)
	return !ok
}

func decodedKey(secret string) ([]byte, bool) {
	text := strings.TrimRight(strings.TrimPrefix(secret, keyPrefix), "=")
	key, err := base64.RawStdEncoding.DecodeString(text)
	return key, err == nil && len(key) > 0
}
