//go:build linux

package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestConfigIsAskedForThere: reading a configuration sends requests only to the host of its
// address, and to no service for credentials and no proxy.
func TestConfigIsAskedForThere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var names []string
	w := newWorld(t, func(name string, n int) []string {
		mu.Lock()
		defer mu.Unlock()
		names = append(names, name)
		return []string{"8.8.8.8"}
	})
	for _, port := range []int{80, 443, 3128, 8080} {
		w.listen(port)
	}
	for address, host := range map[string]string{
		"https://config.example.com/a/gateway.yaml?sig=s3cret": "config.example.com",
		"s3://bucket/a/gateway.yaml":                           "bucket.s3.us-east-1.amazonaws.com",
		"s3://bucket/a/gateway.yaml?region=eu-west-1":          "bucket.s3.eu-west-1.amazonaws.com",
		"gs://bucket/a/gateway.yaml":                           "storage.googleapis.com",
		"az://account/container/a/gateway.yaml":                "account.blob.core.windows.net",
	} {
		names = nil
		said := run(t, w.command(command{args: []string{"validate", "-c", address}, dir: t.TempDir(), env: []string{
			"HTTPS_PROXY=http://9.9.9.9:3128", "HTTP_PROXY=http://9.9.9.9:3128", "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.23/v1/credentials",
			"AWS_PROFILE=x", "GOOGLE_APPLICATION_CREDENTIALS=/nowhere", "GCE_METADATA_HOST=9.9.9.9", "GCP_STORAGE_GO_ENABLE_OTEL_METRICS=true",
		}}))
		shown, _, _ := strings.Cut(address, "?")
		// The servers of the world speak no TLS.
		if want := "gateway: " + shown + ": tls: first record does not look like a TLS handshake\n"; said.code != 1 || said.stderr != want {
			t.Errorf("validate -c %s = %d, %q, want %q", address, said.code, said.stderr, want)
		}
		slices.Sort(names)
		if got := slices.Compact(names); !slices.Equal(got, []string{host}) {
			t.Errorf("validate -c %s asks for the addresses of %v, want %s alone", address, got, host)
		}
		if to, n := w.connected(); n != 1 || to[0] != "8.8.8.8:443" {
			t.Errorf("validate -c %s connects to %v, %d times, want to 8.8.8.8:443 once", address, to, n)
		}
	}
}
