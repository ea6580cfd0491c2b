// Command words measures how plainly the comments and documents of this repository are
// written. It counts markers: words and phrases that hide the actor or the subject of a
// sentence, per 1,000 words of Go comments and of Markdown outside of code.
//
//	go run ./infra/words                     words, markers and rates per folder, the worst files
//	go run ./infra/words core/web README.md  the same for these folders and files
//	go run ./infra/words -show core/web      each marker with its file, line and sentence
//	go run ./infra/words -sample 30 -seed 7  random sentences, to judge by reading
//	go run ./infra/words -tests=false        without test files
//
// The idea to know: a low rate proves little by itself, since a sentence can be obscure
// without any marker. So the random sentences are the real measurement; the rate finds the
// files to begin with. The file markers.go defines the markers. A test holds the rate of the whole
// repository below [maxRate].
//
// The share of comments is the share of lines that have a comment, alone or behind code, among
// the lines of Go that are not blank. Generated code does not count.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// run writes the report that args ask for.
func run(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("words", flag.ContinueOnError)
	show := flags.Bool("show", false, "print each marker with its file and line")
	sample := flags.Int("sample", 0, "print this many random sentences")
	seed := flags.Uint64("seed", 1, "choose the random sentences by this number")
	tests := flags.Bool("tests", true, "count the files *_test.go as well")
	worst := flags.Int("worst", 15, "list this many files with the most markers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots := flags.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var texts []text
	for _, root := range roots {
		found, err := walk(root, *tests)
		if err != nil {
			return err
		}
		texts = append(texts, found...)
	}
	switch {
	case *show:
		showMarkers(w, texts)
	case *sample > 0:
		showSample(w, texts, *sample, *seed)
	default:
		showRates(w, texts, *worst)
	}
	return nil
}

// walk reads the Go and Markdown files below root. Generated files, test data, vendored
// packages of Node and hidden folders other than .github are left out.
func walk(root string, tests bool) ([]text, error) {
	var texts []text
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			hidden := strings.HasPrefix(name, ".") && name != ".github" && path != root
			if hidden || name == "node_modules" || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".pb.go") || !tests && strings.HasSuffix(name, "_test.go") {
			return nil
		}
		read := reader(name)
		if read == nil {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := read(src)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		t.path = filepath.ToSlash(path)
		texts = append(texts, t)
		return nil
	})
	return texts, err
}

// A tally is the counts of a folder or a file.
type tally struct {
	name            string
	words           int
	broad, narrow   int // markers, see [markersIn]
	lines, comments int // of Go, see [text]
}

func (t *tally) add(x text) {
	t.lines += x.lines
	t.comments += x.comments
	for _, s := range x.sentences {
		t.words += len(strings.Fields(s.text))
		for _, m := range markersIn(s.text) {
			t.broad++
			if !m.attached {
				t.narrow++
			}
		}
	}
}

// perThousand is the rate of n among words.
func perThousand(n, words int) float64 { return 1000 * float64(n) / float64(max(1, words)) }

func (t *tally) print(w io.Writer) {
	share := "    -"
	if t.lines > 0 {
		share = fmt.Sprintf("%4.1f%%", 100*float64(t.comments)/float64(t.lines))
	}
	fmt.Fprintf(w, "%-34s %7d %7d %7.2f %7d %7.2f %9s\n", t.name, t.words,
		t.narrow, perThousand(t.narrow, t.words), t.broad, perThousand(t.broad, t.words), share)
}

// showRates prints a line for each folder, for all of them, and for the files with the most
// markers.
func showRates(w io.Writer, texts []text, worst int) {
	files, total := tallies(texts)
	folders := map[string]*tally{}
	for _, x := range texts {
		name := folder(x.path)
		if folders[name] == nil {
			folders[name] = &tally{name: name}
		}
		folders[name].add(x)
	}
	head := func(of string) {
		fmt.Fprintf(w, "%-34s %7s %7s %7s %7s %7s %9s\n", of, "words", "markers", "/1000", "broad", "/1000", "comments")
	}
	head("folder")
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		folders[name].print(w)
	}
	total.print(w)
	fmt.Fprintln(w)
	head("file")
	for _, f := range files[:min(worst, len(files))] {
		if f.broad > 0 {
			f.print(w)
		}
	}
}

// tallies returns the counts of each file, the most markers first, and of all files together.
func tallies(texts []text) (files []tally, total tally) {
	files, total = make([]tally, len(texts)), tally{name: "all"}
	for i, x := range texts {
		files[i].name = x.path
		files[i].add(x)
		total.add(x)
	}
	slices.SortStableFunc(files, func(a, b tally) int { return cmp.Compare(b.broad, a.broad) })
	return files, total
}

// folder is the part of a path that a tally is made for: its first two folders, or its
// only one, or "." for a file at the top level.
func folder(path string) string {
	parts := strings.Split(path, "/")
	return cmp.Or(strings.Join(parts[:min(2, len(parts)-1)], "/"), ".")
}

func showMarkers(w io.Writer, texts []text) {
	for _, x := range texts {
		for _, s := range x.sentences {
			for _, m := range markersIn(s.text) {
				note := ""
				if m.attached {
					note = " (broad)"
				}
				fmt.Fprintf(w, "%s:%d: %s%s: %s\n", x.path, s.line, m.word, note, s.text)
			}
		}
	}
}

// showSample prints n sentences of at least four words. Each sentence is as likely as any
// other, and the same seed gives the same sentences of the same texts.
func showSample(w io.Writer, texts []text, n int, seed uint64) {
	var all []string
	for _, x := range texts {
		for _, s := range x.sentences {
			if len(strings.Fields(s.text)) >= 4 {
				all = append(all, fmt.Sprintf("%s:%d: %s", x.path, s.line, s.text))
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all[:min(n, len(all))] {
		fmt.Fprintln(w, s)
	}
}
