package servers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// TestChild is the child process of the tests below. It starts the servers in
// GATEWAY_SERVERS_CHILD, reports it, and ends when its input ends.
func TestChild(t *testing.T) {
	want := strings.Fields(os.Getenv("GATEWAY_SERVERS_CHILD"))
	if len(want) == 0 {
		return
	}
	for _, name := range want {
		ask[name](t)
	}
	fmt.Println("child is ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// ask starts a server, unless it runs, and takes a database in it.
var ask = map[string]func(testing.TB){
	"postgres": func(t testing.TB) { servers.Postgres(t) },
	"mysql":    func(t testing.TB) { servers.MySQL(t) },
	"d1":       func(t testing.TB) { servers.D1(t) },
	"azure":    func(t testing.TB) { servers.Azure(t) },
}

func child(want string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), "GATEWAY_SERVERS_CHILD="+want, "GATEWAY_TEST_POSTGRES_URL=", "GATEWAY_TEST_MYSQL_URL=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// installed are the servers that can be started here.
func installed(t *testing.T) string {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(ask)) {
		t.Run(name, func(t *testing.T) {
			ask[name](t)
			names = append(names, name)
		})
	}
	return strings.Join(names, " ")
}

func TestNothingIsLeftBehind(t *testing.T) {
	want := installed(t)
	if want == "" {
		servers.Check(t, servers.ErrMissing)
	}
	for _, how := range []string{"orderly end", "kill -9"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			// Not t.TempDir, which only the user of the tests can enter.
			tmp, err := os.MkdirTemp("", "left")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(tmp)
			if err := os.Chmod(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			stale, alive := staleFolder(t, tmp), filepath.Join(tmp, "gateway-test-"+strconv.Itoa(os.Getpid())+"-1")
			if err := os.Mkdir(alive, 0o700); err != nil {
				t.Fatal(err)
			}

			cmd := child(want, "TMPDIR="+tmp)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for s := bufio.NewScanner(out); s.Scan() && s.Text() != "child is ready"; {
			}
			if _, err := os.Stat(stale); err == nil {
				t.Error("the folder of a process that is gone was not swept")
			}
			if _, err := os.Stat(alive); err != nil {
				t.Errorf("the folder of a process that runs was swept: %v", err)
			}
			os.Remove(alive)
			if got, want := len(below(t, tmp)), len(strings.Fields(want)); got != want {
				t.Fatalf("%d folders of servers, want %d", got, want)
			}
			if _, err := os.Stat("/proc/self/cmdline"); err == nil && want != "" && len(processes(tmp)) == 0 {
				t.Fatal("no process of the servers is seen: this test would see no leftovers either")
			}
			if how == "kill -9" {
				_ = cmd.Process.Kill()
			}
			in.Close()
			_ = cmd.Wait()
			eventually(t, func() string {
				if left := append(below(t, tmp), processes(tmp)...); len(left) > 0 {
					return fmt.Sprintf("left behind: %q", left)
				}
				return ""
			})
		})
	}
}

// staleFolder makes a folder like that of a dead process whose janitor is dead too.
func staleFolder(t *testing.T, tmp string) string {
	t.Helper()
	gone := exec.Command("sh", "-c", "exit")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(tmp, fmt.Sprintf("gateway-test-%d-1", gone.Process.Pid))
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// processes are the command lines that mention a folder, where the system
// shows them as files.
func processes(dir string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// eventually waits until problem returns nothing.
func eventually(t *testing.T, problem func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		p := problem()
		if p == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(p)
		}
	}
}

func TestMissingComponentSkipsOrFails(t *testing.T) {
	for ci, want := range map[string]string{"": "--- SKIP: TestChild", "true": "--- FAIL: TestChild"} {
		out, _ := child("d1", "PATH="+t.TempDir(), "CI="+ci, "GATEWAY_TEST_SERVERS=").CombinedOutput()
		for _, want := range []string{want, "no node here: install Node.js 18 or newer"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("CI=%s: output without %q:\n%s", ci, want, out)
			}
		}
	}
}
