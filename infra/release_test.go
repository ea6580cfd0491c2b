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
	Before   struct{ Hooks []string }
	Builds   []build
	Archives []struct {
		ID    string
		IDs   []string
		Files []packed
	}
	Nfpms []struct {
		IDs      []string
		Contents []struct{ Src, Dst string }
		Scripts  map[string]string
	}
	Dockers []struct {
		IDs        []string
		Dockerfile string
		Flags      []string
	} `yaml:"dockers_v2"`
}

// packed is a file in an archive besides the program.
type packed struct {
	Src  string
	Info struct{ Owner, Group, Mtime string }
}

type build struct {
	ID, Main, Binary          string
	Env, Tags, Flags, Ldflags []string
	Goos, Goarch              []string
}

// TestReleaseIsMakeBuild: a release is built like "make build" and "make functions".
func TestReleaseIsMakeBuild(t *testing.T) {
	var r release
	parse(t, "../.goreleaser.yaml", &r)
	if len(r.Builds) != 1+len(mains(t)) {
		t.Fatalf("%d builds", len(r.Builds))
	}
	makefile := string(read(t, "../Makefile"))
	r.Builds[0].check(t, makefile, makeTags(makefile, "TAGS"), regexp.MustCompile(`(?m)^LDFLAGS +:= (.*)$`))
	undelivering := regexp.MustCompile(`(?m)^UNDELIVERING +:= (.*)$`).FindStringSubmatch(makefile)
	for _, b := range r.Builds[1:] {
		tags := makeTags(makefile, "FUNCTION_TAGS")
		if slices.Contains(strings.Fields(undelivering[1]), b.ID) {
			tags += " nogrpc"
		}
		b.check(t, makefile, tags, regexp.MustCompile(`(?m)-ldflags '(-s -w)'`))
		if b.Main != "./functions/"+b.ID || b.Binary != "bootstrap" || !slices.Equal(slices.Concat(b.Goos, b.Goarch), []string{"linux", "arm64"}) {
			t.Errorf("%s is no function: %+v", b.ID, b)
		}
	}
}

// makeTags returns the value of a variable of make.
func makeTags(makefile, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + ` +:= (.*)$`).FindStringSubmatch(makefile)
	return append(m, "", "")[1]
}

// check compares a build of the release with the build of make.
func (b build) check(t *testing.T, makefile, tags string, ldflags *regexp.Regexp) {
	t.Helper()
	if strings.Join(b.Tags, " ") != tags {
		t.Errorf("%s is released with tags %q, built with %q", b.ID, b.Tags, tags)
	}
	if !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) || !slices.Equal(b.Flags, []string{"-trimpath"}) {
		t.Errorf("%s is released with %q and %q", b.ID, b.Env, b.Flags)
	}
	flags := ldflags.FindStringSubmatch(makefile)
	values := regexp.MustCompile(`=\S+`)
	released := regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(strings.Join(b.Ldflags, " "), "x")
	if flags == nil || values.ReplaceAllString(released, "=") != values.ReplaceAllString(flags[1], "=") {
		t.Errorf("%s is released with %q, built with %q", b.ID, b.Ldflags, flags)
	}
}

// TestReleaseKeepsApart: packages and the image contain only the gateway, and each archive of
// a function only that function.
func TestReleaseKeepsApart(t *testing.T) {
	var r release
	parse(t, "../.goreleaser.yaml", &r)
	whole := []string{"gateway"}
	if !slices.Equal(r.Nfpms[0].IDs, whole) || !slices.Equal(r.Dockers[0].IDs, whole) {
		t.Errorf("packages are of %q, images of %q", r.Nfpms[0].IDs, r.Dockers[0].IDs)
	}
	if len(r.Archives) != len(r.Builds) {
		t.Errorf("%d archives of %d builds", len(r.Archives), len(r.Builds))
	}
	for i, a := range r.Archives {
		if a.ID != r.Builds[i].ID || !slices.Equal(a.IDs, []string{a.ID}) {
			t.Errorf("archive %s is of %q", a.ID, a.IDs)
		}
	}
}

// TestReleaseIsOfNoMachine: archives of one commit are the same on every machine and at every
// time.
func TestReleaseIsOfNoMachine(t *testing.T) {
	var r release
	parse(t, "../.goreleaser.yaml", &r)
	for _, f := range r.Archives[0].Files {
		if f.Info.Owner != "root" || f.Info.Group != "root" || f.Info.Mtime == "" {
			t.Errorf("%s is packed with the owner and the time that it has where it is built", f.Src)
		}
	}
}

// TestReleaseHasItsFiles: each file of a release exists, or an earlier make target makes it.
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
		if a.ID == "gateway" { // the others hold only a function
			for _, f := range a.Files {
				names = append(names, f.Src)
			}
		}
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

// TestUnitOfThePackage: the package installs the files of the unit at the paths in the unit.
func TestUnitOfThePackage(t *testing.T) {
	text := string(read(t, "../.goreleaser.yaml"))
	for _, path := range []string{"/etc/gateway/gateway.yaml", "/etc/gateway/gateway.env"} {
		if !strings.Contains(text, "dst: "+path+",") || !strings.Contains(string(read(t, unit)), "="+path) && !strings.Contains(string(read(t, unit)), "=-"+path) {
			t.Errorf("%s is not in both, package and unit", path)
		}
	}
}

// TestTargets: the make targets and files in the workflows exist.
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
