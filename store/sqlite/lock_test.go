package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// linked returns a hard link to the database file at path, in a new folder.
func linked(t *testing.T, path string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestLockIsTheFilesOwn: the lock holds for the file, under any of its names.
func TestLockIsTheFilesOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	c := openConn(t, path) // SQLite closes descriptors of the file
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	c.Close()
	link := linked(t, path)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	for what, name := range map[string]string{"without the lock file": path, "through a hard link": link} {
		again, err := Acquire(name)
		if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "in use by another gateway") {
			t.Errorf("Acquire %s = %v, want that another gateway uses the file", what, err)
		}
		if again != nil {
			again.Release()
		}
	}
	acquireAgain(t, lock, path)
}

// acquireAgain releases a lock and checks that it is free.
func acquireAgain(t *testing.T, lock *Lock, path string) {
	t.Helper()
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Acquire(path)
	if err != nil {
		t.Fatalf("Acquire after Release = %v", err)
	}
	again.Release()
}

// TestHardLinkOfServedFile: a command must not open a hard link of the served file. SQLite would
// write the command's commits to a WAL beside the link, and the gateway would overwrite them.
func TestHardLinkOfServedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	do(t, openConn(t, path), write("CREATE TABLE t (n INTEGER)"))
	link := linked(t, path)
	if c, err := Open(link); err == nil || !strings.Contains(err.Error(), "under another name") {
		t.Errorf("Open of a hard link = %v, want that the file is served under another name", err)
		if err == nil {
			c.Close()
		}
	}
	do(t, openConn(t, path), write("INSERT INTO t VALUES (1)")) // a command beside the server
}

// TestRefusedStartMakesNoFile: a refused start does not replace a database that was moved away by
// an empty one.
func TestRefusedStartMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if again, err := Acquire(path); err == nil {
		again.Release()
		t.Error("Acquire beside another gateway = nil, want an error")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a refused Acquire made a database file")
	}
}

// TestLockOfLinkToNothing: the lock file of a link without a target is beside the file that the
// link names.
func TestLockOfLinkToNothing(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink("data.db", link); err != nil {
		t.Fatal(err)
	}
	if err := Examine(link); err != nil {
		t.Errorf("Examine of a link to no file = %v", err)
	}
	lock, err := Acquire(link)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if again, err := Acquire(filepath.Join(dir, "data.db")); err == nil {
		again.Release()
		t.Error("Acquire of the link's file took a second lock")
	}
}
