package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestChanges checks the verdict on a change of the configuration. Each archive in
// testdata/change begins with a gateway.yaml. Pairs of files follow: a replacement of
// gateway.yaml, named for its change, and the verdict on it. The verdict is "same", "allowed"
// or the problems.
func TestChanges(t *testing.T) {
	archives, err := filepath.Glob("testdata/change/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("Glob(testdata/change/*.txtar) = %v, %v, want some", archives, err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		now := loaded(t, string(a.Files[0].Data))
		for i := 1; i+1 < len(a.Files); i += 2 {
			next, want := a.Files[i], string(a.Files[i+1].Data)
			if got := verdict(now, loaded(t, string(next.Data))); got != want {
				t.Errorf("%s: %s: %s\nwant:\n%s", name, next.Name, got, want)
			}
		}
	}
}

func loaded(t *testing.T, text string) *Config {
	t.Helper()
	env := map[string]string{"TOKEN": "a-token", "EMPTY": ""}
	c, err := Load(Options{
		FS: fstest.MapFS{"gateway.yaml": file(text)}, Path: "gateway.yaml",
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func verdict(now, next *Config) string {
	problems := now.Forbids(next)
	switch {
	case now.Same(next) && len(problems) == 0:
		return "same\n"
	case len(problems) == 0:
		return "allowed\n"
	}
	return problems.Error() + "\n"
}

// A running gateway refuses a change of any field of the database, also of a field that is
// added to the type later.
func TestNoFieldOfTheDatabaseChanges(t *testing.T) {
	kind := reflect.TypeFor[Database]()
	for i := range kind.NumField() {
		now, next := Default(), Default()
		switch f := reflect.ValueOf(next).Elem().FieldByName("Database").Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.String:
			f.SetString(f.String() + "x")
		default:
			t.Fatalf("%s is a %s", kind.Field(i).Name, f.Kind())
		}
		got := fmt.Sprint(now.Forbids(next))
		if path := "database." + kind.Field(i).Tag.Get("yaml"); !strings.Contains(got, path+": cannot change") || now.Same(next) {
			t.Errorf("%s changes: %s", path, got)
		}
	}
}

// The problems of a change are logged, so they show neither the old secret nor the new one.
func TestForbidsShowsNoSecret(t *testing.T) {
	now := loaded(t, "database: {driver: postgres, url: 'postgres://u:old-s3cret@db/x'}\napi: {auth_token: old-s3cret}")
	next := loaded(t, "database: {driver: postgres, url: 'postgres://u:new-s3cret@db/x'}")
	if got := now.Forbids(next).Error(); strings.Contains(got, "s3cret") || strings.Count(got, "\n") != 1 {
		t.Errorf("Forbids = %s, want two lines without a secret", got)
	}
}
