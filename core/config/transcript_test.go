package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/infra/test/golden"
)

// TestTranscripts loads each archive in testdata and compares the result with files of the
// archive. The file problems has the error of Load, and no such file means no error. The files
// warnings and config are compared if they are there. Each line of config is "path = value";
// only the listed paths are compared. The file env is the environment, and all other files are
// the configuration. An archive with a *.local.* file is loaded with the environment local. An
// archive with a file remote is loaded as a remote configuration.
func TestTranscripts(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("Glob(testdata/*.txtar) = %v, %v, want some", archives, err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { transcript(t, name) })
	}
}

func transcript(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := outcome(a)
	if golden.Updating() {
		for i, f := range a.Files {
			if text, ok := got[f.Name]; ok {
				a.Files[i].Data = []byte(text)
			}
		}
		golden.Write(t, name, txtar.Format(a))
		return
	}
	for _, f := range a.Files {
		if text, ok := got[f.Name]; ok {
			golden.Compare(t, "Load("+name+"): "+f.Name, string(f.Data), text)
		}
	}
	if got["problems"] != "" && !slices.ContainsFunc(a.Files, func(f txtar.File) bool { return f.Name == "problems" }) {
		t.Errorf("Load(%s) = %s, want no problems", name, got["problems"])
	}
}

// optionsOf returns the options with which an archive is loaded.
func optionsOf(a *txtar.Archive) Options {
	files, env, o := fstest.MapFS{}, map[string]string{}, Options{Path: "gateway.yaml"}
	for _, f := range a.Files {
		switch f.Name {
		case "env":
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				env[name] = strings.ReplaceAll(value, `\n`, "\n")
			}
		case "remote":
			o.Remote = true
		default:
			files[f.Name] = &fstest.MapFile{Data: f.Data}
			if strings.Contains(f.Name, ".local") {
				o.Env = "local"
			}
		}
	}
	o.FS = files
	o.Lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	return o
}

// outcome loads an archive. It returns the actual contents of the files problems, warnings and
// config, by their names.
func outcome(a *txtar.Archive) map[string]string {
	var paths []string
	for _, f := range a.Files {
		for line := range strings.Lines(string(f.Data)) {
			if path, _, _ := strings.Cut(line, " ="); f.Name == "config" {
				paths = append(paths, strings.TrimSpace(path))
			}
		}
	}
	c, err := Load(optionsOf(a))
	if err != nil {
		return map[string]string{"problems": err.Error() + "\n", "warnings": "", "config": ""}
	}
	return map[string]string{"problems": "", "warnings": lines(c.Warnings()), "config": excerpt(c, paths)}
}

func lines(problems []Problem) string {
	if len(problems) == 0 {
		return ""
	}
	return Problems(problems).Error() + "\n"
}

// excerpt shows the fields at the given paths, secrets included.
func excerpt(c *Config, paths []string) string {
	all := map[string]string{}
	flatten(reflect.ValueOf(c).Elem(), "", all)
	var b bytes.Buffer
	for _, path := range paths {
		value, ok := all[path]
		if !ok {
			value = "(absent)"
		}
		fmt.Fprintf(&b, "%s = %s\n", path, strings.ReplaceAll(value, "\n", `\n`))
	}
	return b.String()
}

func flatten(v reflect.Value, path string, all map[string]string) {
	switch x := v.Interface().(type) {
	case Secret:
		all[path] = x.Reveal()
		return
	case Duration, Network:
		all[path] = fmt.Sprint(x)
		return
	}
	if isParsed(v.Type()) {
		v = v.FieldByName("Text")
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(v.Elem(), path, all)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				key := f.Tag.Get("yaml")
				if key == "-" {
					key = f.Name
				}
				flatten(v.Field(i), join(path, key), all)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			flatten(v.MapIndex(key), join(path, key.String()), all)
		}
	case reflect.Slice:
		all[path] = fmt.Sprint(v.Len())
		for i := range v.Len() {
			flatten(v.Index(i), index(path, i), all)
		}
	default:
		all[path] = fmt.Sprint(v.Interface())
	}
}

func TestLoadErrorIsProblems(t *testing.T) {
	_, err := Load(Options{FS: fstest.MapFS{}, Path: "gateway.yaml"})
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Errorf("Load(missing file) = %v, want one Problem", err)
	}
}
