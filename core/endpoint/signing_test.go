package endpoint

import (
	"strings"
	"testing"
)

func TestSigningKey(t *testing.T) {
	for secret, want := range map[string]string{
		"not base64":    "not base64",
		"plain":         "plain", // base64 has no five digits
		" spaces kept ": " spaces kept ",
		"whsec_QUJD":    "ABC",
		"whsec_QUI=":    "AB",
		"whsec_QUI":     "AB", // padding is often lost
		"QUJD":          "ABC",
		"QUI=":          "AB",
		"QUI":           "AB",
		"whsk_QUJD":     "whsk_QUJD",
		"====":          "====",
	} {
		if got, err := SigningKey(secret); err != nil || string(got) != want {
			t.Errorf("SigningKey(%q) = %q, %v, want %q", secret, got, err, want)
		}
		if got := PlainKey(secret); got != (secret == want) {
			t.Errorf("PlainKey(%q) = %v, want %v", secret, got, secret == want)
		}
	}
	for _, secret := range []string{"", " \t", "whsec_", "whsec_=", "whsec_s3cret!", "whsec_-_-_"} {
		if got, err := SigningKey(secret); err == nil {
			t.Errorf("SigningKey(%q) = %q, want an error", secret, got)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("SigningKey(%q) = %v, which tells the secret", secret, err)
		}
	}
}
