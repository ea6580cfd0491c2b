package doctor

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
)

// A transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Doctor warns of an unencrypted connection with and without a token.
func TestDoctorOnAnOpenLine(t *testing.T) {
	for address, warned := range map[string]bool{"http://gateway.example": true, "https://gateway.example": false, "http://127.0.0.1:8888": false} {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		nobody := transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("nobody there") })
		v := outside{Client: remote.New(remote.Options{Base: base, HTTP: &http.Client{Transport: nobody}})}
		found := v.security(t.Context())
		if got := len(found) > 0 && strings.HasPrefix(found[0].Detail, address+" is not encrypted"); got != warned {
			t.Errorf("%s: %+v, want a warning: %v", address, found, warned)
		}
	}
}
