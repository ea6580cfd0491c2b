package verify

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

const gitlabToken = "X-Gitlab-Token"

// newGitLab makes the scheme of GitLab's secret tokens: X-Gitlab-Token is the secret
// itself. It proves that the sender knows the secret and nothing about the body, so it is
// only as good as its TLS connection. A GitLab with a signing token follows Standard
// Webhooks; use that scheme then. See
// https://docs.gitlab.com/user/project/integrations/webhooks/.
func newGitLab(o Options) (Scheme, error) {
	s := &gitlab{secret: o.Secrets[0]}
	for _, secret := range o.Secrets {
		s.digests = append(s.digests, sha256.Sum256([]byte(secret)))
	}
	return s, nil
}

// A gitlab compares tokens. It keeps digests of the secrets for that.
type gitlab struct {
	secret  string // signs requests
	digests [][sha256.Size]byte
}

// Verify compares digests. All digests have one length, so the time does not reveal the
// length of the secret.
func (s *gitlab) Verify(r Request, _ time.Time) error {
	token, err := single(r, gitlabToken)
	if err != nil {
		return err
	}
	digest, matched := sha256.Sum256([]byte(token)), 0
	for i := range s.digests {
		matched |= subtle.ConstantTimeCompare(s.digests[i][:], digest[:])
	}
	if matched == 0 {
		return mismatch(gitlabToken, "is not the secret")
	}
	return nil
}

// Sign sends the first secret itself: the scheme has no signature.
func (s *gitlab) Sign(Message, time.Time) (map[string]string, error) {
	return map[string]string{gitlabToken: s.secret}, nil
}
