package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Bounds of a stripped function in bytes. The deployed function is for arm64. The function for
// amd64 is 5 % larger, for operators that cannot deploy arm64. Segments are whole pages of 64
// KiB, so a few more bytes may cost a page.
var bounds = map[string]int64{"arm64": 15<<20 + 832<<10, "amd64": 34 << 19}

// tags are the build tags of each function. Only the worker calls gRPC receivers.
var tags = map[string]string{
	"intake": "lambda.norpc grpcnotrace nogrpc",
	"pull":   "lambda.norpc grpcnotrace nogrpc",
	"worker": "lambda.norpc grpcnotrace",
	"cron":   "lambda.norpc grpcnotrace nogrpc",
}

// TestSizes builds the functions as the Makefile does and bounds their size, since each cold
// start loads all linked code. A short run links only the function nearest to its bound.
func TestSizes(t *testing.T) {
	for arch, bound := range bounds {
		for name := range tags {
			if testing.Short() && (name != "worker" || arch != "arm64") {
				continue
			}
			t.Run(name+"/"+arch, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "bootstrap")
				build(t, name, arch, path)
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%.2f MiB", float64(info.Size())/(1<<20))
				if info.Size() > bound {
					t.Errorf("%d bytes, want at most %d", info.Size(), bound)
				}
			})
		}
	}
}

func build(t testing.TB, name, arch, path string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-tags", tags[name], "-trimpath", "-ldflags", "-s -w", "-o", path, "../../"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}
