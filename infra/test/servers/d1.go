package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Hosted is one D1 database and the two ways to reach it.
type Hosted struct {
	API      string // API mode: base URL in place of https://api.cloudflare.com
	Account  string // API mode: account_id
	Database string // API mode: database_id
	Endpoint string // proxy mode: hosted_sql_endpoint
	Token    string // both: api_token
}

// WithoutRights is a token that the API knows but that may not use D1: it
// answers 403 where an unknown one gets 401.
func (h Hosted) WithoutRights() string { return h.Token + "-without-rights" }

// D1Options are the options of a server.
type D1Options struct {
	Dir       string   // parent of its folder, e.g. /dev/shm; default: the system's temporary files
	Databases int      // number of databases; default 1
	Env       []string // "NAME=value", besides the environment of this process
}

// A D1Server is D1's engine, workerd, on 127.0.0.1: the real SQL, limits and
// refusals, behind an imitation of Cloudflare's REST API and behind the
// gateway's own proxy Worker.
type D1Server struct {
	process   *process
	args      []string
	databases int
	told      struct {
		Port           int
		Account, Token string
		Databases      []string
	}
}

// StartD1 starts a server with empty databases, which takes a second or two. The
// error wraps [ErrMissing] if node or its packages are not installed.
func StartD1(o D1Options) (*D1Server, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	node, home := find("node"), nodeFolder("d1", "rig.mjs")
	if node == "" {
		return nil, missing("node", "install Node.js 18 or newer, then run infra/test/install")
	}
	if _, err := os.Stat(filepath.Join(home, "node_modules/miniflare/package.json")); err != nil {
		return nil, missing("miniflare", "run infra/test/install")
	}
	p, err := newProcess(o.Dir, "KILL", nil)
	if err != nil {
		return nil, err
	}
	p.env = append(p.env, o.Env...)
	s := &D1Server{process: p, databases: max(1, o.Databases)}
	s.args = []string{node, filepath.Join(home, "rig.mjs"), "--folder", p.dir, "--databases", strconv.Itoa(s.databases)}
	if err := s.Restart(); err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("start D1 in %s: %w", p.dir, err)
	}
	return s, nil
}

// Hosted is the server's database number i, counted from 0. It stays the same
// over restarts.
func (s *D1Server) Hosted(i int) Hosted {
	base, id := fmt.Sprintf("http://127.0.0.1:%d", s.told.Port), s.told.Databases[i]
	return Hosted{API: base, Account: s.told.Account, Database: id, Endpoint: base + "/proxy/" + id, Token: s.told.Token}
}

// Kill ends the server at once with SIGKILL; committed data stays.
func (s *D1Server) Kill() { s.process.kill() }

// Restart starts the server on its data and on its old port, after ending it in
// good order if it runs, and returns when it answers.
func (s *D1Server) Restart() error {
	s.process.end(sigTerm, 30*time.Second)
	return s.process.startNode(s.args, &s.told)
}

// Log returns the end of the server's output.
func (s *D1Server) Log() string { return s.process.log() }

// Stop ends the server and removes its folder. It may be called again.
func (s *D1Server) Stop() error { return s.process.remove() }

// The databases of a server are named when it starts, so a test binary has one
// server for this many tests, then another.
const d1Databases = 64

// sharedD1 keeps all servers: a server without a held leash is ended.
var sharedD1 struct {
	sync.Mutex
	servers []*D1Server
	used    int // of the last server's databases
	err     error
}

// D1 returns a fresh, empty database in the test binary's own server. No other test gets it,
// and it ends with the test binary.
func D1(t testing.TB) Hosted {
	t.Helper()
	h, err := nextD1()
	Check(t, err)
	return h
}

func nextD1() (Hosted, error) {
	d := &sharedD1
	d.Lock()
	defer d.Unlock()
	if d.err == nil && (len(d.servers) == 0 || d.used == d1Databases) {
		var s *D1Server
		s, d.err = StartD1(D1Options{Databases: d1Databases})
		d.servers, d.used = append(d.servers, s), 0
	}
	if d.err != nil {
		return Hosted{}, d.err
	}
	d.used++
	return d.servers[len(d.servers)-1].Hosted(d.used - 1), nil
}
