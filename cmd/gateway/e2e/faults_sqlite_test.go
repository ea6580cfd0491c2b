//go:build linux

package e2e

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestSQLiteFaults: faults of the database file of a running gateway.
func TestSQLiteFaults(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name  string
		begin func(t *testing.T, db string) (end func())
	}{
		{"the file is moved away", func(t *testing.T, db string) func() {
			away := db + ".away"
			check(t, os.Rename(db, away))
			return func() { check(t, os.Rename(away, db)) }
		}},
		{"the file is moved to another file system", func(t *testing.T, db string) func() {
			away := filepath.Join(onDisk(t, "size=64m"), "away.db")
			move(t, db, away)
			return func() { move(t, away, db) }
		}},
		{"all files are moved to another file system", func(t *testing.T, db string) func() {
			away := filepath.Join(onDisk(t, "size=64m"), "away.db")
			suffixes := []string{"", "-shm", "-wal"} // in the order of mv gateway.db*
			for _, s := range suffixes {
				move(t, db+s, away+s)
			}
			return func() {
				for _, s := range suffixes {
					move(t, away+s, db+s)
				}
			}
		}},
		{"another process holds the lock", func(t *testing.T, db string) func() {
			l := openLedger(t, db)
			l.db.SetMaxOpenConns(1)
			if _, err := l.db.Exec("BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			return func() { l.close() }
		}},
		{"the file is read-only", func(t *testing.T, db string) func() {
			// A file's mode does not stop writes through an open file, or by root.
			file, log := freeze(t, db), freeze(t, db+"-wal")
			return func() { file(); log() }
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGateway(t, outageConfig, r)
			testFaultOf(t, g, r, fault{f.name, func(t *testing.T) func() { return f.begin(t, g.database()) }})
		})
	}
}

// TestSQLiteDiskFull: the disk of the file is full while many events come.
func TestSQLiteDiskFull(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	disk := onDisk(t, "size=32m")
	g := newGateway(t, outageConfig+"database: {url: "+filepath.Join(disk, "gateway.db")+"}\n", r)
	check(t, os.Symlink(filepath.Join(disk, "gateway.db"), g.database())) // the path that the test reads
	ballast := filepath.Join(disk, "ballast")
	testFaultOf(t, g, r, fault{"disk full", func(t *testing.T) func() {
		fill(t, ballast)
		return func() { remove(t, ballast) }
	}})
}

// onDisk returns a folder with its own file system, in memory.
func onDisk(t *testing.T, options string) string {
	t.Helper()
	disk, err := os.MkdirTemp("", "gateway-disk-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(disk) })
	need(t, "the right to mount", syscall.Mount("tmpfs", disk, "tmpfs", 0, options+",mode=0777"))
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	return disk
}

// move moves a file as mv does between file systems.
func move(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	check(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	check(t, err)
	_, err = io.Copy(out, in)
	check(t, err)
	check(t, out.Close())
	check(t, os.Remove(from))
}

// freeze makes a file immutable until thaw, like chattr +i: it can be neither written nor
// removed.
func freeze(t *testing.T, path string) (thaw func()) {
	t.Helper()
	const immutable = 0x10 // FS_IMMUTABLE_FL of <linux/fs.h>
	f, err := os.Open(path)
	check(t, err)
	fd := int(f.Fd())
	before, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	need(t, "a file system with attributes", err)
	err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, before|immutable)
	need(t, "the right to set attributes of files", err)
	thaw = sync.OnceFunc(func() {
		check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, before))
		check(t, f.Close())
	})
	t.Cleanup(thaw) // also if the test ends here: its files are removed after that
	return thaw
}
