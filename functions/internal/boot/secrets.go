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

// Prefixes of values that name a place.
const (
	parameterPrefix = "ssm:"
	secretPrefix    = "secretsmanager:"
)

// Bounds for requests to the extension.
const (
	secretTime  = 5 * time.Second       // for one value
	secretsTime = 10 * time.Second      // for all values, so that the invocation has time left to report missing ones
	secretAgain = 25 * time.Millisecond // between tries while the extension starts
	maxSecret   = 128 << 10             // bytes of an answer; a secret has at most 64 KiB
)

// secrets looks up the environment variables of a function. A value that begins with ssm: or
// secretsmanager: names a parameter of AWS Systems Manager or a secret of AWS Secrets Manager.
// The AWS Parameters and Secrets extension runs next to the function and fetches the value.
// Each value is fetched once in an environment:
// https://docs.aws.amazon.com/systems-manager/latest/userguide/ps-integration-lambda-extensions.html
//
//	ssm:/gateway/api-token         the parameter of that name, decrypted
//	secretsmanager:gateway/db      the text of that secret, given by name or ARN
//	secretsmanager:gateway/db#url  one field of it, if it is a JSON object
//
// No value is in any error, and none is logged.
type secrets struct {
	system
	address string
	client  *http.Client

	// patient is whether fetch waits for the extension. The extension answers no request
	// before the first invocation, so fetch asks it only once while the environment is made.
	patient atomic.Bool

	mu     sync.Mutex
	known  map[string]string // value by variable
	failed map[string]error
	until  time.Time // deadline for all values
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

// during returns a lookup for environment variables. The lookup fetches values while ctx
// lasts. After that it returns the values that it has. Values that were missing before are
// fetched again.
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

// value returns the value stored in a place, for the variable name.
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

// missing returns an error that names the variables without a value, or nil. The error is
// errLater if all of them may have one from the first invocation on.
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

// A place is a parameter or a secret that holds a value.
type place struct {
	secret bool   // in Secrets Manager, otherwise in Systems Manager
	name   string // name or ARN
	field  string // field of a secret that is a JSON object; "" for the whole secret
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

// errStarting means that the extension has not started, is not ready, or is missing.
var errStarting = errors.New("the AWS Parameters and Secrets extension does not answer; add its layer to the function, or wait until it has started")

// errLater means that the first invocation can fetch the value.
var errLater = core.Refuse(core.Unavailable, "the AWS Parameters and Secrets extension answers from the first invocation on")

// fetch returns the value in a place. While the extension starts, it tries again for at most
// secretTime.
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

// maxReason is the number of bytes of a refusal that an error shows.
const maxReason = 300

// refusal explains a status other than 200. It is of kind Unavailable if a later try may
// succeed.
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

// read finds the value in an answer of the extension.
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

// fieldOf returns one field of a secret that is a JSON object. The field is a string, a number
// or a boolean.
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
