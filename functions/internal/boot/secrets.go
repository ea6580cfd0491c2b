package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Prefixes of values that say where the value is.
const (
	parameterPrefix = "ssm:"
	secretPrefix    = "secretsmanager:"
)

// Bounds of what is asked of the extension.
const (
	secretTime  = 5 * time.Second       // for one value
	secretsTime = 10 * time.Second      // for all, so that an invocation can tell what is missing
	secretAgain = 25 * time.Millisecond // between tries while the extension starts
	maxSecret   = 128 << 10             // bytes of an answer; a secret has at most 64 KiB
)

// secrets are the variables of a function. One whose value begins with ssm: or
// secretsmanager: stands for a parameter of AWS Systems Manager or a secret of AWS Secrets
// Manager. The AWS Parameters and Secrets extension, which runs beside the function, is
// asked for it, once in an environment:
// https://docs.aws.amazon.com/systems-manager/latest/userguide/ps-integration-lambda-extensions.html
//
//	ssm:/gateway/api-token         the parameter of that name, decrypted
//	secretsmanager:gateway/db      the text of that secret, named or by its ARN
//	secretsmanager:gateway/db#url  one field of it, if it is a JSON object
//
// No value is in any error, and none is logged.
type secrets struct {
	system
	address string
	client  *http.Client

	// patient is whether the extension is waited for. It answers nobody before the first
	// invocation, so while the environment is made it is asked once.
	patient atomic.Bool

	mu     sync.Mutex
	known  map[string]string // by variable
	failed map[string]error
	until  time.Time // when to give up
}

func newSecrets(s system) *secrets {
	return &secrets{
		system:  s,
		address: "http://localhost:" + cmp.Or(s.env("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"), "2773"),
		client:  &http.Client{Timeout: secretTime, Transport: &http.Transport{DisableKeepAlives: true}},
		known:   map[string]string{},
		failed:  map[string]error{},
	}
}

// during answers for variables while ctx lasts, and later from what is known. What was
// missing before is asked for again.
func (s *secrets) during(ctx context.Context) func(name string) (string, bool) {
	s.mu.Lock()
	clear(s.failed)
	s.until = time.Now().Add(secretsTime)
	s.mu.Unlock()
	return func(name string) (string, bool) {
		value, ok := s.lookup(name)
		where, stored := placeOf(value)
		if !ok || !stored {
			return value, ok
		}
		return s.value(ctx, name, where)
	}
}

// value is that of a variable which names a place.
func (s *secrets) value(ctx context.Context, name string, where place) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.known[name]; ok {
		return value, true
	}
	ctx, cancel := context.WithDeadline(ctx, s.until)
	defer cancel()
	value, err := s.fetch(ctx, where)
	if err != nil {
		s.failed[name] = err
		return "", false
	}
	s.known[name] = value
	return value, true
}

// missing is an error that names the variables whose values could not be had.
func (s *secrets) missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := core.Unavailable
	var all []string
	later := len(s.failed) > 0
	for name, err := range s.failed {
		later = later && errors.Is(err, errLater)
		all = append(all, fmt.Sprintf("the environment variable %s: %v", name, err))
		if !core.IsKind(err, core.Unavailable) {
			kind = core.Invalid
		}
	}
	switch {
	case later:
		return errLater
	case len(all) == 0:
		return nil
	}
	slices.Sort(all)
	return core.Refuse(kind, "%s", strings.Join(all, "; "))
}

// A place is where a value is kept.
type place struct {
	secret bool   // in Secrets Manager, else in Systems Manager
	name   string // or ARN
	field  string // of a secret that is a JSON object; "" for all of it
}

func placeOf(value string) (place, bool) {
	if name, ok := strings.CutPrefix(value, parameterPrefix); ok {
		return place{name: name}, true
	}
	if name, ok := strings.CutPrefix(value, secretPrefix); ok {
		id, field, _ := strings.Cut(name, "#")
		return place{secret: true, name: id, field: field}, true
	}
	return place{}, false
}

func (p place) path() string {
	if p.secret {
		return "/secretsmanager/get?secretId=" + url.QueryEscape(p.name)
	}
	return "/systemsmanager/parameters/get?withDecryption=true&name=" + url.QueryEscape(p.name)
}

func (p place) String() string {
	if p.secret {
		return "the secret " + p.name
	}
	return "the parameter " + p.name
}

// errStarting says that the extension is there and not ready, or not there yet.
var errStarting = errors.New("the AWS Parameters and Secrets extension does not answer; add its layer to the function, or wait until it has started")

// errLater says that the first invocation will know.
var errLater = core.Refuse(core.Unavailable, "the AWS Parameters and Secrets extension answers from the first invocation on")

// fetch asks for what is kept in a place, again and again while the extension starts.
func (s *secrets) fetch(ctx context.Context, p place) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	if p.name == "" {
		return "", core.Refuse(core.Invalid, "its value names no parameter or secret; write %s/name or %sname", parameterPrefix, secretPrefix)
	}
	for {
		text, err := s.ask(ctx, p)
		if !errors.Is(err, errStarting) {
			return text, err
		}
		if !s.patient.Load() {
			return "", errLater
		}
		select {
		case <-time.After(secretAgain):
		case <-ctx.Done():
			return "", &core.Refusal{Kind: core.Unavailable, Message: err.Error()}
		}
	}
}

func (s *secrets) ask(ctx context.Context, p place) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+p.path(), nil)
	if err != nil {
		return "", fmt.Errorf("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT is no port: %w", err)
	}
	r.Header.Set("X-Aws-Parameters-Secrets-Token", s.env("AWS_SESSION_TOKEN"))
	reply, err := s.client.Do(r)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
			return "", errStarting
		}
		return "", core.Refuse(core.Unavailable, "the AWS Parameters and Secrets extension gives no answer about %s", p)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxSecret))
	switch {
	case err != nil:
		return "", core.Refuse(core.Unavailable, "the answer of the AWS Parameters and Secrets extension about %s broke off", p)
	case reply.StatusCode != http.StatusOK && strings.Contains(string(body), "not ready to serve traffic"):
		return "", errStarting
	case reply.StatusCode != http.StatusOK:
		return "", s.refusal(p, reply.StatusCode, string(body))
	}
	return p.read(body)
}

// maxReason is how many bytes of a refusal are shown.
const maxReason = 300

// refusal says why AWS gives a value to nobody, or not to this function.
func (s *secrets) refusal(p place, status int, reason string) error {
	if token := s.env("AWS_SESSION_TOKEN"); token != "" {
		reason = strings.ReplaceAll(reason, token, "[token]")
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	kind := core.Invalid
	if status == http.StatusTooManyRequests || status >= 500 {
		kind = core.Unavailable
	}
	return core.Refuse(kind, "%s cannot be read: status %d: %q", p, status, reason)
}

// read finds the value in an answer.
func (p place) read(answer []byte) (string, error) {
	var a struct {
		Parameter    struct{ Value *string }
		SecretString *string
		SecretBinary []byte
	}
	if json.Unmarshal(answer, &a) != nil {
		return "", core.Refuse(core.Invalid, "the answer of the AWS Parameters and Secrets extension about %s makes no sense", p)
	}
	switch {
	case !p.secret && a.Parameter.Value != nil:
		return *a.Parameter.Value, nil
	case p.secret && a.SecretString != nil && p.field != "":
		return p.fieldOf(*a.SecretString)
	case p.secret && a.SecretString != nil:
		return *a.SecretString, nil
	case len(a.SecretBinary) > 0:
		return "", core.Refuse(core.Invalid, "%s is binary, and a variable is text", p)
	}
	return "", core.Refuse(core.Invalid, "the answer of the AWS Parameters and Secrets extension about %s has no value", p)
}

// fieldOf is one field of a secret that is a JSON object: a text, or a number or truth
// value as it is spelt.
func (p place) fieldOf(secret string) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(secret), &fields) != nil {
		return "", core.Refuse(core.Invalid, "%s is no JSON object, and so has no field %q", p, p.field)
	}
	raw, ok := fields[p.field]
	if !ok {
		return "", core.Refuse(core.Invalid, "%s has no field %q", p, p.field)
	}
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil && string(raw) != "null":
		return text, nil
	case strings.ContainsAny(string(raw[:1]), "-0123456789tf"):
		return string(raw), nil
	}
	return "", core.Refuse(core.Invalid, "the field %q of %s is no text, number or truth value", p.field, p)
}
