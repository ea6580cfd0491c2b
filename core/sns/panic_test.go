package sns

import (
	"context"
	"errors"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// A panic while a certificate is fetched or read is an error of the requests that wait for
// the certificate. The fetch is on a goroutine of its own, where it would end the process.
func TestFetchPanics(t *testing.T) {
	c := NewCertificates(func(context.Context, string, int64) (int, []byte, error) { panic("not thought of") }, inMarch)
	for range 2 { // the second call gets the remembered failure
		certificate, err := c.find(t.Context(), client{}, awsCertificate)
		if p := (*core.Panic)(nil); certificate != nil || !errors.As(err, &p) {
			t.Errorf("find = %v, %v, want the panic as an error", certificate, err)
		}
	}
	if n := len(c.firsts); n != 0 {
		t.Errorf("%d fetches still hold their place", n)
	}
}
