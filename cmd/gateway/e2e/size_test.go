//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSize: the released program is at most 36 MiB. A fourth of it is the libraries of object
// stores.
func TestSize(t *testing.T) {
	t.Parallel()
	const most = 36 << 20
	name := filepath.Join(t.TempDir(), "gateway")
	build := exec.Command("go", "build", "-tags", "otel grpcnotrace disable_grpc_modules", "-ldflags", "-s -w", "-o", name, "github.com/eventgateway/gateway/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the gateway: %v\n%s", err, out)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", info.Size()); info.Size() >= most {
		t.Errorf("%d bytes, want less than %d", info.Size(), most)
	}
}
