package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Azure returns the address of an account of Azure Blob Storage, such as
// http://127.0.0.1:10000/devstoreaccount1. The account is in Microsoft's emulator, which this
// test binary starts. The emulator keeps its data in memory, and ends with the test binary.
func Azure(t testing.TB) (endpoint string) {
	t.Helper()
	a, err := sharedAzure()
	Check(t, err)
	return fmt.Sprintf("http://127.0.0.1:%d/%s", a.told.Port, AzureAccount)
}

// AzureAccount and AzureKey are the account and key of every emulator; Microsoft publishes
// them: https://learn.microsoft.com/azure/storage/common/storage-connect-azurite.
const (
	AzureAccount = "devstoreaccount1"
	AzureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// azurite is the emulator. A variable keeps it alive: a server without a held leash is ended.
type azurite struct {
	process *process
	told    struct{ Port int }
}

var sharedAzure = sync.OnceValues(startAzure)

func startAzure() (*azurite, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	node, home := find("node"), nodeFolder("azurite", "rig.mjs")
	if node == "" {
		return nil, missing("node", "install Node.js 20 or newer, then run infra/test/install")
	}
	if _, err := os.Stat(filepath.Join(home, "node_modules/azurite/package.json")); err != nil {
		return nil, missing("azurite", "run infra/test/install")
	}
	p, err := newProcess("", "KILL", nil)
	if err != nil {
		return nil, err
	}
	a := &azurite{process: p}
	if err := p.startNode([]string{node, filepath.Join(home, "rig.mjs"), "--folder", p.dir}, &a.told); err != nil {
		_ = p.remove()
		return nil, fmt.Errorf("start azurite in %s: %w", p.dir, err)
	}
	return a, nil
}
