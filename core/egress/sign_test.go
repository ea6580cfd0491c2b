package egress

import (
	"sync"
	"testing"
)

// The vector of standard-webhooks/standard-webhooks, libraries/go/webhook_test.go.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTimestamp = "1614265330"
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestSignPublishedVector(t *testing.T) {
	s, err := newSigner([]string{vectorSecret})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the pooled state resets
		if got := s.sign(vectorID, vectorTimestamp, []byte(vectorBody)); got != vectorSignature {
			t.Errorf("sign() = %s, want %s", got, vectorSignature)
		}
	}
}

// TestSignWithSeveralSecrets: each secret makes one signature. The second secret is not base64,
// so its bytes are its key. A signer is safe for concurrent use.
func TestSignWithSeveralSecrets(t *testing.T) {
	one, _ := newSigner([]string{"plain secret"})
	both, err := newSigner([]string{vectorSecret, "plain secret"})
	if err != nil {
		t.Fatal(err)
	}
	want := vectorSignature + " " + one.sign(vectorID, vectorTimestamp, []byte(vectorBody))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got := both.sign(vectorID, vectorTimestamp, []byte(vectorBody)); got != want {
					t.Errorf("sign() = %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}
