package endpoint

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
)

func TestParseSigningKey(t *testing.T) {
	for secret, want := range map[string]string{
		"not base64":       "not base64",
		"hunter-2":         "hunter-2",
		" spaces kept ":    " spaces kept ",
		"schlüssel":        "schlüssel",
		"_-_-_-_-abcdefgh": "_-_-_-_-abcdefgh",
		"a":                "a",
		"====":             "====",
		"whsec_QUJD":       "ABC",
		"whsec_QUI=":       "AB",
		"whsec_QUI":        "AB", // padding is often lost
		"whsec_QUJDA":      "ABC",
		"QUJD":             "ABC",
		"QUJD\n":           "ABC", // of a file
		"QU\r\nJD":         "ABC",
		"QUI=":             "AB",
		"QUI=\n":           "AB",
		"QUI":              "AB",
		"QUJ=":             "AB",  // spare bits
		"QUJDA":            "ABC", // a digit too many
		"QUJD-":            "QUJD-",
	} {
		if got, err := ParseSigningKey(secret); err != nil || string(got.Symmetric) != want || got.Public != nil || !got.Signs() {
			t.Errorf("ParseSigningKey(%q) = %+v, %v, want %q", secret, got, err, want)
		}
		if got := PlainKey(secret); got != (secret == want) {
			t.Errorf("PlainKey(%q) = %v, want %v", secret, got, secret == want)
		}
	}
	for _, secret := range []string{"", " \t", "whsec_", "whsec_=", "whsec_s3cret!", "whsec_-_-_", "whsk_QUJD", "whsk_s3cret!", "whpk_QUJD"} {
		if got, err := ParseSigningKey(secret); err == nil {
			t.Errorf("ParseSigningKey(%q) = %+v, want an error", secret, got)
		} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "QUJD") {
			t.Errorf("ParseSigningKey(%q) = %v, which tells the secret", secret, err)
		}
	}
}

func TestParseSigningKeyPair(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	for prefix, raw := range map[string][]byte{"whsk_": private, "whsk_ ": private.Seed(), "whpk_": public} {
		prefix = strings.TrimSpace(prefix)
		got, err := ParseSigningKey(prefix + base64.StdEncoding.EncodeToString(raw))
		if err != nil || !got.Public.Equal(public) || got.Symmetric != nil || got.Signs() != (prefix == "whsk_") {
			t.Errorf("ParseSigningKey(%s…) = %+v, %v, want the public key %x", prefix, got, err, public)
		}
	}
}

func TestLooksHex(t *testing.T) {
	for secret, want := range map[string]bool{
		strings.Repeat("9f86d081", 8):            true,
		strings.Repeat("9F86D081", 8):            true,
		strings.Repeat("9f86d081", 4) + "\n":     true,
		"9f86d081":                               false, // too short to be one
		"whsec_" + strings.Repeat("9f86d081", 8): false,
		strings.Repeat("9f86d08g", 8):            false,
		strings.Repeat("9f86d081", 8) + "a":      false,
	} {
		if got := LooksHex(secret); got != want {
			t.Errorf("LooksHex(%q) = %v, want %v", secret, got, want)
		}
	}
}
