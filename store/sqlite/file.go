package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A file is the database that the sessions are open to. Another program may move, delete or
// replace the file meanwhile. Writes then go to a file that has no name or another one. See
// renew.go.
type file struct {
	path string
	log  string // the path of the WAL

	// use is held for reading while a session is used, and for writing while all of them
	// are closed.
	use   sync.RWMutex
	info  os.FileInfo  // of the file that sessions are open to; changes under use
	renew func() error // closes all sessions if the file is another by now; needs use
}

func identify(path string) (*file, error) {
	real, err := target(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, store.Unavailable(err)
	}
	return &file{path: path, log: real + "-wal", info: info}, nil
}

// errDisplaced is why sessions may have to be closed: their file is no longer at its path.
var errDisplaced = errors.New("was deleted or replaced; put it back or restart the gateway")

func displaced(path string) error {
	return store.Unavailable(fmt.Errorf("the file %s %w", path, errDisplaced))
}

// check tells whether the path still leads to the file.
func (f *file) check() error {
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.info, now) {
		return displaced(f.path)
	}
	if now.Size() == 0 && f.info.Size() > 0 {
		return store.Unavailable(fmt.Errorf("the file %s was emptied; stop the gateway and put a backup in its place", f.path))
	}
	return nil
}

// again runs do under use, and once more if the file was another meanwhile and its sessions
// have been closed. Do must not have taken effect if it tells of a displaced file.
func (f *file) again(do func() error) error {
	err := f.using(do)
	if !errors.Is(err, errDisplaced) {
		return err
	}
	if why := f.renew(); why != nil {
		return why
	}
	return f.using(do)
}

func (f *file) using(do func() error) error {
	f.use.RLock()
	defer f.use.RUnlock()
	return do()
}

// dsn is the driver's name for the file, with the settings every connection gets.
func dsn(path string, pragmas ...string) string {
	q := url.Values{"mode": {"rw"}}        // the file exists; one that is gone must not come back empty
	q.Add("_pragma", "busy_timeout(5000)") // first: the others may meet a lock
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "cache_size(-4096)")            // KiB; the operating system caches the file as well
	q.Add("_pragma", "journal_size_limit(67108864)") // bytes
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?" + q.Encode()
}

// prepareFile makes sure that the file exists with sane rights, and says in plain
// words what SQLite would call error 14.
func prepareFile(path string) error {
	if err := checkFolder(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		var pe *os.PathError
		errors.As(err, &pe)
		remedy := ""
		if errors.Is(err, fs.ErrPermission) {
			remedy = ": " + rights
		}
		return core.Refuse(core.Unavailable, "database file %s cannot be opened: %v%s", path, pe.Err, remedy)
	}
	return f.Close()
}

func checkFolder(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return core.Refuse(core.Unavailable, "database folder %s does not exist", dir)
	}
	return nil
}
