// Package server starts the databases under measurement, each on a medium, makes a fresh
// database for every run, and says what a server did meanwhile.
//
// The idea to know: the speed of a database depends on its syncs and on the CPU that is
// left to it. The medium fixes both, and both are measured. The server is a child of this
// process with a folder of its own. Its CPU time includes all its processes, also ended
// ones.
//
// It imports infra/test/servers, machine, proc, the drivers and the standard
// library, nothing of the gateway.
package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// Names of databases, as the configuration of the gateway has them.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	MySQL    = "mysql"
	Hosted   = "hosted_sql"
)

// Names of media.
const (
	Disk  = "disk" // a folder on a disk
	CPU   = "cpu"  // a folder in memory: syncs are free, so the CPU is the limit
	OneMS = "1ms"  // the same, and each sync takes a millisecond longer, like a network volume
)

// memory is where Linux keeps a file system in memory. It is there on every Linux with tmpfs
// mounted as usual. On other systems the media cpu and 1ms are left out.
const memory = "/dev/shm"

// ErrLeftOut marks an error of Start that says why a database cannot be measured here. Such
// a database is skipped.
var ErrLeftOut = errors.New("left out")

// missing is such an error. It wraps the reason, so that the report shows it.
type missing struct{ error }

func (missing) Is(target error) bool { return target == ErrLeftOut }

// leftOut makes such an error of a format.
func leftOut(why string, args ...any) error { return missing{fmt.Errorf(why, args...)} }

// Options select the server to start.
// Settings are in addition to those of infra/test/servers, which keeps syncs on.
type Options struct {
	Driver   string
	Medium   string
	Dir      string   // of medium disk
	Settings []string // of PostgreSQL, "name=value"
}

// A Server runs one kind of database on one medium.
type Server struct {
	Options
	folder string // on the medium; everything is below it
	number int    // of databases so far
	shim   *shim
	engine engine
}

// An engine has the behaviour of one kind of database.
type engine interface {
	// fresh makes an empty database.
	fresh(name string) (*Database, error)
	stop() error
}

// Start starts a server. Stop removes its folder. If this process is killed, the server
// ends too.
func Start(ctx context.Context, o Options) (s *Server, err error) {
	if why := notSlower[o.Driver]; o.Medium == OneMS && why != "" {
		return nil, leftOut("its syncs cannot be made slower: %s", why)
	}
	s = &Server{Options: o}
	// Data, socket and log of the server are below this folder, so Stop leaves nothing behind.
	if s.folder, err = makeFolder(o); err != nil {
		return nil, err
	}
	if o.Medium == OneMS {
		s.shim, err = buildShim(ctx, s.folder)
	}
	if err == nil {
		s.engine, err = s.start()
	}
	// A server that is not installed is left out; one that does not start is an error.
	if errors.Is(err, servers.ErrMissing) {
		err = missing{err}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	return s, nil
}

// notSlower has the reasons why a database is not measured with slow syncs.
var notSlower = map[string]string{
	SQLite: "it is part of the program, which has no C library to put something before",
	MySQL:  "in memory it writes its log without any, through a mapped file",
	Hosted: "D1's engine is measured as it is",
}

// makeFolder makes the folder on the medium. Servers that run as another user must
// be able to pass through it.
func makeFolder(o Options) (string, error) {
	parent := o.Dir
	if o.Medium != Disk {
		parent = memory
		if _, err := os.Stat(memory); err != nil {
			return "", leftOut("there is no file system in memory at %s", memory)
		}
	}
	dir, err := os.MkdirTemp(parent, "bench")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// start starts the server of a database, in the folder.
func (s *Server) start() (engine, error) {
	switch s.Driver {
	case SQLite:
		return sqliteFiles{s.folder}, nil
	case Postgres:
		return startPostgres(s)
	case MySQL:
		return startMySQL(s)
	case Hosted:
		return startHosted(s)
	}
	return nil, fmt.Errorf("no database %q", s.Driver)
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error { return errors.Join(s.engine.stop(), os.RemoveAll(s.folder)) }

// New makes an empty database. The caller drops it.
// Names are never used twice: a process of an earlier run that is still there can disturb no
// later one.
func (s *Server) New() (*Database, error) {
	s.number++
	d, err := s.engine.fresh("bench" + strconv.Itoa(s.number))
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	d.Driver = s.Driver
	return d, nil
}

// CPU is the time that all processes of the server have used so far, 0 for
// SQLite, which has none.
func (s *Server) CPU() (time.Duration, error) {
	pids, err := s.pids()
	var sum time.Duration
	for _, pid := range pids {
		used, treeErr := proc.TreeCPU(pid)
		sum, err = sum+used, errors.Join(err, treeErr)
	}
	return sum, err
}

// pids are the first processes of the server: the folder that infra/test/servers
// makes below ours names them in a file.
func (s *Server) pids() (pids []int, err error) {
	files, err := filepath.Glob(filepath.Join(s.folder, "*", "pid"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f, err)
		}
		pids = append(pids, pid)
	}
	return pids, err
}

// Place names the file system that the server writes to.
func (s *Server) Place() string { return machine.Medium(s.folder) }

// SyncRate is how many appends of 8 KiB, each with an fdatasync, a file takes in a
// second there, as the server would do it. It takes at most limit.
func (s *Server) SyncRate(ctx context.Context, limit time.Duration) (float64, error) {
	if s.shim != nil {
		return s.shim.syncRate(ctx, s.folder, limit)
	}
	return machine.SyncRate(s.folder, limit)
}
