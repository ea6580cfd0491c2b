package main

import (
	"crypto/rand"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/once"
	"github.com/spf13/cobra"
)

// templates holds, for each starter, <name>.yaml and its overlay <name>.local.yaml.
//
//go:embed templates
var templates embed.FS

// aliases are other names of templates.
var aliases = map[string]string{"provider_a": "github", "provider_b": "stripe", "topic": "sns"}

const (
	// "gateway start" reads these names without flags, so the steps after
	// init need no -c.
	baseFile    = "gateway.yaml"
	overlayFile = "gateway.local.yaml"
)

// newInit makes "gateway init": a starter configuration in two files. It calls no server. It
// exits with 1 if a file exists and --force is not given, and with 2 for an unknown template.
//
// Two files, since a single one would hold either secrets, which must not be committed, or
// variables, which a first try on a laptop should not need. gateway.yaml is for the repository
// and names variables; gateway.local.yaml has random secrets and stays on the machine.
func newInit(a *app) *cobra.Command {
	var (
		template, dir string
		force         bool
	)
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a starter configuration",
		Long: `Write a starter configuration: gateway.yaml, and gateway.local.yaml with the
differences for a laptop: it listens on 127.0.0.1, and has secrets that are made at
random each time. Only its owner can read it. Templates: ` + strings.Join(templateNames(), ", ") + ".",
		Example: `  gateway init
  gateway init --template github --dir hooks`,
		GroupID: groupServe,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.init(template, dir, force)
		},
	}
	c.Flags().StringVar(&template, "template", "default", "what to start from: "+strings.Join(templateNames(), ", "))
	c.Flags().StringVar(&dir, "dir", ".", "write into this `folder`, made if need be")
	c.Flags().BoolVar(&force, "force", false, "overwrite what is there")
	a.complete(c, "template", func(*cobra.Command) []cobra.Completion { return templateNames() })
	return c
}

// templateNames lists the templates, the default one first.
func templateNames() []string {
	names := []string{"default"}
	files, _ := templates.ReadDir("templates") // embedded: cannot fail
	for _, f := range files {
		name, isOverlay := strings.CutSuffix(f.Name(), ".local.yaml")
		if !isOverlay {
			name = strings.TrimSuffix(name, ".yaml")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// init writes the files of a template, reads them back, and prints the next steps. Reading them
// back shows the names of sources and handlers that the steps need.
func (a *app) init(template, dir string, force bool) error {
	name := template
	if original, ok := aliases[name]; ok {
		name = original
	}
	if !slices.Contains(templateNames(), name) {
		return usagef("there is no template %q; there are %s", template, strings.Join(templateNames(), ", "))
	}
	written := []string{filepath.Join(dir, baseFile), filepath.Join(dir, overlayFile)}
	if err := writeTemplate(name, written, force); err != nil {
		return err
	}
	cfg, err := config.Load(config.Options{FS: hostFS{}, Path: written[0], Env: "local", Lookup: a.lookup})
	if err != nil {
		return err // the local overlay needs no variables, so the user did not cause this
	}
	if a.json {
		return a.PrintJSON(struct {
			Files []string `json:"files"`
		}{written})
	}
	for _, path := range written {
		a.Printf("wrote %s", terminal.Visible(path))
	}
	a.printNextSteps(dir, name, cfg)
	return nil
}

// writeTemplate writes the base file and the overlay. It checks both for existing files first.
func writeTemplate(name string, paths []string, force bool) error {
	// Both files are checked before the first is written, so a refusal leaves the folder as it
	// was.
	if err := refuseOverwrite(paths, force); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil {
		return fmt.Errorf("make folder %s: %w", filepath.Dir(paths[0]), pathless(err))
	}
	for i, file := range []string{name + ".yaml", name + ".local.yaml"} {
		data, err := templates.ReadFile("templates/" + file)
		if err != nil {
			return err
		}
		// Only a file that got secrets is made unreadable for others: gateway.yaml is meant to
		// be shared.
		text := withSecrets(string(data))
		if err := writeFile(paths[i], text, text != string(data)); err != nil {
			return fmt.Errorf("write %s: %w", paths[i], pathless(err))
		}
	}
	return nil
}

// secretHole marks the place of a secret in a template: 32 random bytes, as hex or base64.
var secretHole = once.Regexp(`\{\{(hex|base64)\}\}`)

// withSecrets fills each hole of a template with a secret of its own.
func withSecrets(text string) string {
	return secretHole().ReplaceAllStringFunc(text, func(hole string) string {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		if hole == "{{hex}}" {
			return hex.EncodeToString(secret)
		}
		return base64.StdEncoding.EncodeToString(secret)
	})
}

// writeFile writes a file. If the file is secret, only its owner can read it, even if the
// file existed before.
func writeFile(path, text string, secret bool) error {
	if !secret {
		return os.WriteFile(path, []byte(text), 0o666)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = f.Chmod(0o600); err == nil {
		_, err = f.WriteString(text)
	}
	return errors.Join(err, f.Close())
}

// refuseOverwrite returns an error if one of the files exists. Lstat finds a dangling link too,
// which a write would follow.
func refuseOverwrite(paths []string, force bool) error {
	if force {
		return nil
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return core.Refuse(core.Invalid, "%s exists already; --force overwrites it", path)
		}
	}
	return nil
}
