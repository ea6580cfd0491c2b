package proc

import (
	"os/exec"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if ran, err := Run(t.Context(), Spec{Path: shell, Args: []string{"-c", "exit 0"}, Dir: t.TempDir()}); err != nil || ran.Took <= 0 {
		t.Errorf("Run = %+v, %v", ran, err)
	}
	_, err = Run(t.Context(), Spec{Path: shell, Args: []string{"-c", "echo no such thing >&2; exit 3"}, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("Run of what fails = %v, want what it said", err)
	}
}
