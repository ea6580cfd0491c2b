package infra_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type release struct {
	Before struct{ Hooks []string }
	Builds []struct {
		Main, Binary string
		Env, Tags    []string
		Flags        []string
		Ldflags      []string
		Goos, Goarch []string
	}
	Archives []struct{ Files []string }
	Nfpms    []struct {
		Contents []struct{ Src, Dst string }
		Scripts  map[string]string
	}
	Dockers []struct {
		Dockerfile string
		Flags      []string
	} `yaml:"dockers_v2"`
}

// TestReleaseIsMakeBuild: what is released is what "make build" builds.
func TestReleaseIsMakeBuild(t *testing.T) {
	var r release
	parse(t, "../.goreleaser.yaml", &r)
	if len(r.Builds) != 1 {
		t.Fatalf("%d builds", len(r.Builds))
	}
	b, makefile := r.Builds[0], string(read(t, "../Makefile"))
	tags := regexp.MustCompile(`(?m)^TAGS +:= (.*)$`).FindStringSubmatch(makefile)
	if tags == nil || strings.Join(b.Tags, " ") != tags[1] {
		t.Errorf("released with tags %q, built with %q", b.Tags, tags)
	}
	if !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) || !slices.Equal(b.Flags, []string{"-trimpath"}) {
		t.Errorf("released with %q and %q", b.Env, b.Flags)
	}
	flags := regexp.MustCompile(`(?m)^LDFLAGS +:= (.*)$`).FindStringSubmatch(makefile)
	values := regexp.MustCompile(`=\S+`)
	released := regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(strings.Join(b.Ldflags, " "), "x")
	if flags == nil || values.ReplaceAllString(released, "=") != values.ReplaceAllString(flags[1], "=") {
		t.Errorf("released with %q, built with %q", b.Ldflags, flags)
	}
}

// TestReleaseHasItsFiles: all it is made of is there, or is made by a target before it.
func TestReleaseHasItsFiles(t *testing.T) {
	var r release
	parse(t, "../.goreleaser.yaml", &r)
	makefile := string(read(t, "../Makefile"))
	made := map[string]bool{}
	for _, hook := range r.Before.Hooks {
		target, ok := strings.CutPrefix(hook, "make ")
		if ok && !strings.Contains(makefile, "\n"+target+":") {
			t.Errorf("there is no target %s", target)
		}
		made[target] = ok
	}
	var names []string
	for _, a := range r.Archives {
		names = append(names, a.Files...)
	}
	for _, p := range r.Nfpms {
		for _, c := range p.Contents {
			names = append(names, c.Src)
		}
		for _, script := range p.Scripts {
			names = append(names, script)
		}
	}
	for _, d := range r.Dockers {
		names = append(names, d.Dockerfile)
		if stage := strings.TrimPrefix(d.Flags[0], "--target="); !strings.Contains(string(read(t, dockerfile)), "AS "+stage+"\n") {
			t.Errorf("the Dockerfile has no stage %s", stage)
		}
	}
	for _, name := range names {
		folder, _, _ := strings.Cut(name, "/")
		found, _ := filepath.Glob(filepath.Join("..", strings.ReplaceAll(name, "**", "*")))
		if !made[folder] && len(found) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestUnitOfThePackage: the unit starts what the package installs, where it looks for it.
func TestUnitOfThePackage(t *testing.T) {
	text := string(read(t, "../.goreleaser.yaml"))
	for _, path := range []string{"/etc/gateway/gateway.yaml", "/etc/gateway/gateway.env"} {
		if !strings.Contains(text, "dst: "+path+",") || !strings.Contains(string(read(t, unit)), "="+path) && !strings.Contains(string(read(t, unit)), "=-"+path) {
			t.Errorf("%s is not in both, package and unit", path)
		}
	}
}

// TestTargets: the workflows ask make for what it has, and run what is there.
func TestTargets(t *testing.T) {
	makefile := string(read(t, "../Makefile"))
	for _, file := range []string{"../.github/workflows/ci.yml", "../.github/workflows/release.yml", dockerfile} {
		text := string(read(t, file))
		for _, m := range regexp.MustCompile(`\bmake ([a-z]+)\b`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s", file, m[1])
			}
		}
		for _, path := range regexp.MustCompile(`\binfra/[\w./-]+`).FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
