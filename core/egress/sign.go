package egress

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/eventgateway/gateway/core/endpoint"
)

// A signer signs deliveries as in Standard Webhooks 1.0, in the symmetric form (v1) or with
// an ed25519 key (v1a):
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
// Several secrets give several signatures, so that a handler can change from one to the
// next.
type signer struct {
	keys []endpoint.SigningKey
	pool sync.Pool // of *signing: an HMAC with a known key resets cheaply
}

// A signing is the working memory of one signature.
type signing struct {
	macs          []hash.Hash // by key; nil for an ed25519 key
	head, sum, to []byte
}

// newSigner returns nil for no secrets: such deliveries are unsigned.
func newSigner(secrets []string) (*signer, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	s := &signer{}
	for _, secret := range secrets {
		key, err := endpoint.ParseSigningKey(secret)
		if err == nil && !key.Signs() {
			err = errors.New("is a public key, which cannot sign")
		}
		if err != nil {
			return nil, fmt.Errorf("signing secret %w", err)
		}
		s.keys = append(s.keys, key)
	}
	s.pool.New = func() any { return newSigning(s.keys) }
	return s, nil
}

func newSigning(keys []endpoint.SigningKey) *signing {
	g := &signing{macs: make([]hash.Hash, len(keys))}
	for i, key := range keys {
		if key.Symmetric != nil {
			g.macs[i] = hmac.New(sha256.New, key.Symmetric)
		}
	}
	return g
}

// sign returns the value of webhook-signature. For each HMAC key it has v1 and the base64
// of the HMAC-SHA256 of "id.timestamp.body"; for an ed25519 key it has v1a and the base64
// of the signature. The timestamp is in Unix seconds.
func (s *signer) sign(id, timestamp string, body []byte) string {
	g := s.pool.Get().(*signing)
	defer s.pool.Put(g)
	g.head = append(append(g.head[:0], id...), '.')
	g.head = append(append(g.head, timestamp...), '.')
	g.to = g.to[:0]
	for i, m := range g.macs {
		if i > 0 {
			g.to = append(g.to, ' ')
		}
		if m == nil {
			signed := append(g.head[:len(g.head):len(g.head)], body...)
			g.to = base64.StdEncoding.AppendEncode(append(g.to, "v1a,"...), ed25519.Sign(s.keys[i].Private, signed))
			continue
		}
		m.Reset()
		m.Write(g.head)
		m.Write(body)
		g.sum = m.Sum(g.sum[:0])
		g.to = base64.StdEncoding.AppendEncode(append(g.to, "v1,"...), g.sum)
	}
	return string(g.to)
}
