package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// Doctor tells the kinds of TLS errors apart, since their remedies differ.
func TestDoctorOfTLS(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "mail.example"}
	for _, c := range []struct {
		err    error
		remedy string
	}{
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}}, "renew its certificate, unless it is this machine's clock that is wrong"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.TooManyIntermediates}}, "have its certificate signed by an authority known here, or make that one known (SSL_CERT_FILE)"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "mail.example"}}, "correct the url, or have its certificate name that host"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "have its certificate signed by an authority known here, or make that one known (SSL_CERT_FILE)"},
		{&url.Error{Op: "Head", URL: "https://mail.example", Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, "the receiver there speaks no TLS: write http:// if that is meant"},
		{&url.Error{Op: "Head", URL: "https://mail.example", Err: http.ErrSchemeMismatch}, "the receiver there speaks no TLS: write http:// if that is meant"},
		{errors.New("odd"), ""},
	} {
		if got := unreached(at, c.err); got.Status != Failed || got.Remedy != c.remedy {
			t.Errorf("unreached(%v) = %s with remedy %q, want failed with %q", c.err, got.Status, got.Remedy, c.remedy)
		}
	}
}
