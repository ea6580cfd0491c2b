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
// replace the file meanwhile. Writes then go to a file that has another name or no name at all,
// and a restart of the gateway does not find them. See renew.go.
type file struct {
	path string // as configured; may lead through symbolic links
	log  string // the path of the WAL, beside the file behind those links

	// use is held for reading while a session is used, and for writing while all sessions
	// are closed.
	use   sync.RWMutex
	info  os.FileInfo  // of the file that sessions are open to; changes under use
	renew func() error // conn.renew; locks use itself, so its caller must not hold use
}

// identify describes the file that is at path now.
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

// errDisplaced means that the sessions' file is no longer at its path. It makes again call
// renew.
var errDisplaced = errors.New("was deleted or replaced; put it back or restart the gateway")

// displaced is the refusal for the database file or its WAL at path.
func displaced(path string) error {
	return store.Unavailable(fmt.Errorf("the file %s %w", path, errDisplaced))
}

// check reports an error unless the path still leads to the file. Each batch calls it, since
// SQLite keeps working on an open file that has no name. renew cannot help if the file was
// emptied: no other file at the path has the content. The caller holds use.
func (f *file) check() error {
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.info, now) {
		return displaced(f.path)
	}
	if now.Size() == 0 && f.info.Size() > 0 {
		return store.Unavailable(fmt.Errorf(
			"the file %s was emptied; stop the gateway and put a backup in its place", f.path))
	}
	return nil
}

// again runs do under use. If do fails because the file is displaced and renew succeeds, again
// runs do a second time. A do that returns errDisplaced must not have taken effect, or its
// writes would be made twice.
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

// using runs do while no session can be closed.
func (f *file) using(do func() error) error {
	f.use.RLock()
	defer f.use.RUnlock()
	return do()
}

// dsn is the driver's name for the file, with the settings every connection gets. The pragmas
// of the caller come last.
func dsn(path string, pragmas ...string) string {
	// Not rwc: the file exists, and a deleted file must not come back empty.
	q := url.Values{"mode": {"rw"}}
	// The timeout is the first pragma, since the others may meet a lock. In milliseconds.
	q.Add("_pragma", "busy_timeout(5000)")
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "temp_store(MEMORY)")
	// In KiB. The operating system caches the file as well.
	q.Add("_pragma", "cache_size(-4096)")
	q.Add("_pragma", "journal_size_limit(67108864)") // bytes
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	// These characters end the path or start an escape in a URI of SQLite.
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?" + q.Encode()
}

// prepareFile creates the file if there is none, readable by its owner only, and opens it once.
// The refusal gives the system's cause. SQLite would only say "unable to open database file"
// (error 14) for every cause.
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
		return core.Refuse(core.Unavailable,
			"database file %s cannot be opened: %v%s", path, pe.Err, remedy)
	}
	return f.Close()
}

// checkFolder refuses a path in a folder that does not exist. It is not created: a wrong path
// would start an empty database there.
func checkFolder(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return core.Refuse(core.Unavailable, "database folder %s does not exist", dir)
	}
	return nil
}
