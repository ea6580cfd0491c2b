package infra

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// TestOpenAPIIsLinted: the description of the API keeps the rules that Spectral recommends for
// OpenAPI, warnings included.
func TestOpenAPIIsLinted(t *testing.T) {
	const folder = "test/openapi"
	node, err := exec.LookPath("node")
	spectral := filepath.Join(folder, "node_modules/@stoplight/spectral-cli/dist/index.js")
	if err == nil {
		_, err = os.Stat(spectral)
	}
	if err != nil {
		err = fmt.Errorf("spectral: %w: run infra/test/install", servers.ErrMissing)
	}
	servers.Check(t, err)
	lint := exec.CommandContext(t.Context(), node, spectral, "lint", "--fail-severity=warn", "--ruleset", filepath.Join(folder, "ruleset.yaml"), "../core/web/openapi.yaml")
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("spectral: %v\n%s", err, out)
	}
}
