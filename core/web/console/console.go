// Package console has the files of the operator console: one page, its scripts and its styles.
//
// The idea to know: nothing is built. The scripts are ES modules as a browser loads them, and one of
// them, lib.js, is a library (its header names version and license). Everything that a page shows, it
// reads from the management API.
//
// All files but the page are served below a folder whose name is a hash of all of them. So a browser
// keeps them for ever, and never mixes the files of two versions.
//
// console imports only the standard library.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed assets
var embedded embed.FS

// A File is a file of the console.
type File struct {
	Type    string // its media type
	Text    []byte
	Gzipped func() []byte // Text, compressed; the first call compresses it
	Tag     string        // names the Text, as an ETag
}

// NewFile returns a file with a text.
func NewFile(kind string, text []byte) File {
	sum := sha256.Sum256(text)
	gzipped := sync.OnceValue(func() []byte { return compress(text) })
	return File{Type: kind, Text: text, Gzipped: gzipped, Tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// Files are all files of one version.
type Files struct {
	Version string          // the name of the folder of the files
	Page    []byte          // the page, which refers to the files
	Files   map[string]File // by name
}

// page is the name of the page. In it, slot stands for the version, and modules for links that load
// at once the scripts that the first page needs: a browser would find each only when it has read those
// that import it. The scripts of other pages are imported later, so that the first page does not wait for
// them.
const (
	page    = "index.html"
	slot    = "VERSION"
	modules = "<!-- MODULES -->\n"
)

// types are the media types of the files, by the ends of their names.
var types = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// loaded has the files once Load was called. A variable that the program makes at its start would link
// the files into functions that serve no console.
var loaded struct {
	sync.Once
	files *Files
}

// Load returns the files. The first call makes them; all calls return the same.
func Load() *Files {
	loaded.Do(func() { loaded.files = load() })
	return loaded.files
}

func load() *Files {
	all := &Files{Files: map[string]File{}}
	hash := sha256.New()
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		hash.Write([]byte(path.Base(name)))
		hash.Write(text)
		if base := path.Base(name); base == page {
			all.Page = text
		} else {
			all.Files[base] = NewFile(types[path.Ext(base)], text)
		}
		return nil
	})
	if err != nil {
		panic("console: " + err.Error()) // the files are in the program
	}
	var links bytes.Buffer
	for _, name := range all.imported("app.js") {
		fmt.Fprintf(&links, `<link rel="modulepreload" href="console/assets/%s/%s">`+"\n", slot, name)
	}
	all.Page = bytes.ReplaceAll(all.Page, []byte(modules), links.Bytes())
	all.Version = hex.EncodeToString(hash.Sum(nil)[:8])
	all.Page = bytes.ReplaceAll(all.Page, []byte(slot), []byte(all.Version))
	return all
}

// imported returns a script and the scripts without which it does not run, in the order in which a browser
// would find them.
func (f *Files) imported(name string) []string {
	names := []string{name}
	for i := 0; i < len(names); i++ {
		for line := range strings.Lines(string(f.Files[names[i]].Text)) {
			_, after, found := strings.Cut(line, "from './")
			next, _, _ := strings.Cut(after, "'")
			if found && strings.HasPrefix(line, "import ") && !slices.Contains(names, next) {
				names = append(names, next)
			}
		}
	}
	return names
}

// compress returns a text as gzip has it.
func compress(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
