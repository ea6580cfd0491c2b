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
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// loadConfig reads the configuration that a command of the program will read.
func loadConfig(c command) (*config.Config, error) {
	env := map[string]string{}
	for _, v := range c.env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return config.Load(config.Options{FS: os.DirFS(c.dir), Path: "gateway.yaml", Env: env["GATEWAY_ENV"],
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
}

// secretsOf returns the secrets in a command's configuration, or none if it has no valid
// configuration. Secrets shorter than a clue are left out, since such a text may appear
// anywhere.
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

// secretsIn returns the secret parts of a field. The whole URL of an alert is secret. Of other
// addresses, the password and the values of the query are.
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
		if field != "Database.url" { // the query of Database.url has options
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

// TestSecretsAreWatchedFor: secretsOf finds the secrets of a configuration, and a log buffer
// notices a secret that is written in two halves.
func TestSecretsAreWatchedFor(t *testing.T) {
	t.Parallel()
	g := newGateway(t, tracesConfig+`
database: {driver: postgres, url: "postgres://u:canary-password@127.0.0.1/d?host=/canary/folder"}
alerts: {url: "${RECEIVER}/canary-path", on: [dlq]}
`, receiver.New(t))
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
