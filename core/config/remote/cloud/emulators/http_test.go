package emulators

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"path"
	"sync"
	"testing"
)

// A folder of files, served with their versions.
type folder struct {
	mu    sync.Mutex
	files map[string]string
}

func newFolder() *folder { return &folder{files: map[string]string{}} }

func (f *folder) put(_ *testing.T, file, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[file] = text
}

func (f *folder) remove(_ *testing.T, file string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, file)
}

func (f *folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	text, found := f.files[path.Base(r.URL.Path)]
	f.mu.Unlock()
	version := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text)))
	switch {
	case !found:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == version:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", version)
		w.Write([]byte(text))
	}
}
