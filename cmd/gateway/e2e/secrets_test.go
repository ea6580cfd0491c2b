//go:build linux

package e2e

import (
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

// loadConfig reads the configuration that a command of the program is going to.
func loadConfig(c command) (*config.Config, error) {
	env := map[string]string{}
	for _, v := range c.env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return config.Load(config.Options{FS: os.DirFS(c.dir), Path: "gateway.yaml", Env: env["GATEWAY_ENV"],
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
}

// secretsOf are the secrets that a command's configuration holds: none, if there is no such
// thing. What is shorter than a clue may be anywhere.
func secretsOf(c command) (secrets []string) {
	if c.dir == "" {
		return nil
	}
	config, err := loadConfig(c)
	if err != nil {
		return nil
	}
	texts(reflect.ValueOf(*config), "Config", func(field, text string) {
		if slices.Contains(blandFields, field) {
			return
		}
		for _, s := range secretsIn(field, text) {
			if len(s) >= clue && !slices.Contains(secrets, s) {
				secrets = append(secrets, s)
			}
		}
	})
	return secrets
}

// secretsIn are what a field holds that must not be told: of an address its password and
// the values of its query, and all of it where alerts go.
func secretsIn(field, text string) []string {
	if field == "Alert.url" {
		return []string{text}
	}
	u, err := url.Parse(text)
	isURL := err == nil && u.Scheme != "" && u.Host != ""
	switch {
	case isURL:
		password, _ := u.User.Password()
		secrets := []string{password}
		if field != "Database.url" { // whose query says how it is reached
			for _, values := range u.Query() {
				secrets = append(secrets, values...)
			}
		}
		return secrets
	case field == "Database.url":
		return nil // a file, or a server's socket
	}
	return []string{text}
}

// TestSecretsAreWatchedFor: the secrets of a configuration are known, and one
// that is written in two halves is noticed.
func TestSecretsAreWatchedFor(t *testing.T) {
	t.Parallel()
	g := newGateway(t, tracesConfig+`
database: {driver: postgres, url: "postgres://u:canary-password@127.0.0.1/d?host=/canary/folder"}
alerts: {url: "${RECEIVER}/canary-path", on: [dlq]}
`, newReceiver(t))
	got := secretsOf(g.command("start"))
	slices.Sort(got)
	receiver, _ := strings.CutPrefix(g.env[len(g.env)-1], "RECEIVER=")
	want := []string{"canary-in-header", "canary-in-url", "canary-password", "canary-signing-secret-of-24-bytes", "canary-token-of-24-bytes-or-more", receiver + "/canary-path"}
	if !slices.Equal(got, want) {
		t.Errorf("secrets %q, want %q", got, want)
	}
	log := &logBuffer{secrets: got}
	for _, part := range []string{"serving\n", strings.Repeat("-", 3*maxLog), "canary-pass", "wor"} {
		_, _ = log.Write([]byte(part)) // into memory
	}
	if said := log.told(); said != "" {
		t.Errorf("told of %q before it was written", said)
	}
	_, _ = log.Write([]byte("d at\n"))
	if said := log.told(); said != "canary-password" {
		t.Errorf("told of %q, want canary-password", said)
	}
}
