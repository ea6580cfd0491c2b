package boot

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkColdStart measures the time from the start of a function until it asks for its
// first invocation. It has no database: connections to its address are refused.
func BenchmarkColdStart(b *testing.B) {
	for _, name := range []string{"intake", "pull", "worker", "cron"} {
		b.Run(name, func(b *testing.B) { benchmarkColdStart(b, name) })
	}
}

func benchmarkColdStart(b *testing.B, name string) {
	folder := b.TempDir()
	path := filepath.Join(folder, "bootstrap")
	build(b, name, path)
	yaml := "database: {driver: postgres, url: 'postgres://u:p@127.0.0.1:1/d'}\nsources: {app: {type: event}}\n" +
		"handlers: {all: {source: app, url: 'https://example.com/'}}\n"
	if err := os.WriteFile(filepath.Join(folder, "gateway.yaml"), []byte(yaml), 0o600); err != nil {
		b.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	runtimeAPI := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/extension/register"):
			w.Header().Set("Lambda-Extension-Identifier", "1")
			_, _ = io.WriteString(w, "{}")
		case strings.HasSuffix(r.URL.Path, "/invocation/next"):
			asked <- struct{}{}
			<-r.Context().Done()
		default:
			<-r.Context().Done()
		}
	}))
	defer runtimeAPI.Close()
	for b.Loop() {
		cmd := exec.Command(path)
		cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(runtimeAPI.URL, "http://"), "LAMBDA_TASK_ROOT=" + folder, "AWS_REGION=eu-west-1"}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		<-asked
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// tags are the build tags of each function. Only the worker calls gRPC receivers.
var tags = map[string]string{
	"intake": "lambda.norpc grpcnotrace nopgxregisterdefaulttypes nogrpc",
	"pull":   "lambda.norpc grpcnotrace nopgxregisterdefaulttypes nogrpc",
	"worker": "lambda.norpc grpcnotrace nopgxregisterdefaulttypes",
	"cron":   "lambda.norpc grpcnotrace nopgxregisterdefaulttypes nogrpc",
}

// build builds a function as the Makefile does, for this machine.
func build(b *testing.B, name, path string) {
	b.Helper()
	cmd := exec.Command("go", "build", "-tags", tags[name], "-trimpath", "-ldflags", "-s -w", "-o", path, "../../"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
}
