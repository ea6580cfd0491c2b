//go:build linux

package lambda

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Secrets plays the AWS Parameters and Secrets extension for a function.
type Secrets struct {
	Parameters map[string]string // of Parameter Store, by name
	Secrets    map[string]string // of Secrets Manager, by name or ARN
	Denied     map[string]bool   // names that the function's role may not read
	Unready    time.Duration     // time after the first request in which it is not ready

	server *httptest.Server
	mu     sync.Mutex
	first  time.Time
	asked  []string
}

// NewSecrets starts an extension that ends with the test.
func NewSecrets(t testing.TB) *Secrets {
	s := &Secrets{Parameters: map[string]string{}, Secrets: map[string]string{}, Denied: map[string]bool{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.server.CloseClientConnections(); s.server.Close() })
	return s
}

// port returns the value of PARAMETERS_SECRETS_EXTENSION_HTTP_PORT.
func (s *Secrets) port() string {
	_, port, _ := net.SplitHostPort(s.server.Listener.Addr().String())
	return port
}

// Asked returns the requested names, in order, with repeats.
func (s *Secrets) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// serve answers as described at
// docs.aws.amazon.com/systems-manager/latest/userguide/ps-integration-lambda-extensions.html
// and in the documentation of the services behind the extension.
func (s *Secrets) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	name, from := "", s.Parameters
	switch r.URL.Path {
	case "/systemsmanager/parameters/get", "/systemsmanager/parameters/get/":
		name = query.Get("name")
	case "/secretsmanager/get":
		name, from = query.Get("secretId"), s.Secrets
	default:
		http.NotFound(w, r)
		return
	}
	value, known := from[name]
	switch {
	case !s.ready(name):
		http.Error(w, "not ready to serve traffic, please wait", http.StatusBadRequest)
	case r.Header.Get("X-Aws-Parameters-Secrets-Token") != Session:
		http.Error(w, "unauthorized to make this request", http.StatusUnauthorized)
	case s.Denied[name]:
		http.Error(w, "an unexpected error occurred while executing request: AccessDeniedException", http.StatusBadRequest)
	case !known:
		http.Error(w, "an unexpected error occurred while executing request: not found", http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, found(r.URL.Path, name, value, query))
	}
}

func (s *Secrets) ready(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() {
		s.first = time.Now()
	}
	s.asked = append(s.asked, name)
	return time.Since(s.first) >= s.Unready
}

func found(path, name, value string, query url.Values) string {
	answer := map[string]any{"ARN": name, "Name": name, "SecretString": value, "VersionStages": []string{"AWSCURRENT"}}
	if path != "/secretsmanager/get" {
		if query.Get("withDecryption") != "true" {
			value = "AQICAHg" // the ciphertext of a SecureString
		}
		answer = map[string]any{"Parameter": map[string]any{"Name": name, "Type": "SecureString", "Value": value, "Version": 1}, "ResultMetadata": map[string]any{}}
	}
	text, _ := json.Marshal(answer) // cannot fail
	return string(text)
}
