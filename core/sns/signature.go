package sns

import (
	"context"
	"crypto"
	"crypto/rsa"
	_ "crypto/sha1" // for crypto.SHA1
	_ "crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// hashes by the version of the signature. Topics have version 1 unless their owner chooses
// 2. Collisions of SHA-1 do not let an attacker make a second message for a signature that
// Amazon made.
var hashes = map[string]crypto.Hash{"1": crypto.SHA1, "2": crypto.SHA256}

// verify checks that Amazon SNS signed the envelope for its topic.
func (t *Topic) verify(ctx context.Context, from client, e envelope) error {
	hash, ok := hashes[e["SignatureVersion"]]
	if !ok {
		return unreadable("SignatureVersion is neither 1 nor 2")
	}
	// A tolerant decoder would accept several texts for the same signature.
	signature, err := base64.StdEncoding.Strict().DecodeString(e["Signature"])
	if err != nil {
		return unreadable("Signature is not base64")
	}
	host, err := hostOf(e["TopicArn"])
	if err != nil {
		return err
	}
	if !isCertificate(e["SigningCertURL"], host) {
		return forged("SigningCertURL is not the address of a certificate at %s", host)
	}
	certificate, err := t.options.Certificates.find(ctx, from, e["SigningCertURL"])
	if err != nil {
		return fmt.Errorf("signing certificate from %s: %w", host, err)
	}
	if err := validAt(certificate, t.options.Clock()); err != nil {
		return fmt.Errorf("signing certificate from %s: %w", host, err)
	}
	digest := hash.New()
	digest.Write(e.text())
	if err := rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), hash, digest.Sum(nil), signature); err != nil {
		return forged("the signature is not of this message")
	}
	return nil
}

// validAt fails outside the certificate's time. The error is not a refusal: this machine's
// clock may be wrong, and Amazon SNS sends a message again that got no answer.
func validAt(c *x509.Certificate, now time.Time) error {
	if now.Before(c.NotBefore) || now.After(c.NotAfter) {
		return fmt.Errorf("it is valid from %s to %s, and it is %s; is the clock right?",
			core.FormatTime(c.NotBefore), core.FormatTime(c.NotAfter), core.FormatTime(now))
	}
	return nil
}
