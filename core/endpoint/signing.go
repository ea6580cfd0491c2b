package endpoint

import (
	"encoding/base64"
	"errors"
	"strings"
)

// SigningKey is what a secret signs deliveries with: the base64 after "whsec_", with or
// without padding, or else the secret's own bytes. The error does not quote the secret.
func SigningKey(secret string) ([]byte, error) {
	if strings.TrimSpace(secret) == "" {
		return nil, errors.New("is empty")
	}
	text, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(key) == 0 {
		return nil, errors.New("is not base64 after whsec_")
	}
	return key, nil
}
