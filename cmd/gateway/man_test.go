//go:build man

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManPages: every command has a page with the same texts as --help.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if code, _, stderr := (session{}).run(t.Context(), "man", dir); code != exitDone {
		t.Fatalf("man = %d, %s", code, stderr)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			check(child)
		}
		if c.Hidden || c.Name() == "help" {
			return
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", firstExample(c)} {
			if !strings.Contains(unroffed(string(page)), want) {
				t.Errorf("the page of %s lacks %q", c.CommandPath(), want)
			}
		}
	}
	check(newRoot(newApp(session{}.system(nil, nil))))
	page, err := os.ReadFile(filepath.Join(dir, "gateway-jobs-list.1"))
	want := ".TP\n\\fB--handler\\fP=\"\"\nonly jobs of this \\fBhandler\\fR, of queue/<name>, workflow/<name> or alert/<number>\n"
	if err != nil || !strings.Contains(string(page), want) {
		t.Errorf("gateway-jobs-list.1: %v, lacks %q", err, want)
	}
	page, err = os.ReadFile(filepath.Join(dir, "gateway-inspect.1"))
	if want := "gateway inspect <event id>"; err != nil || !strings.Contains(unroffed(string(page)), want) {
		t.Errorf("gateway-inspect.1: %v, lacks %q", err, want)
	}
}

// unroffed removes the escapes of a page.
func unroffed(page string) string {
	return strings.NewReplacer(`\-`, "-", `\\`, `\`, `\&`, "").Replace(page)
}

func firstExample(c *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
	return first
}
