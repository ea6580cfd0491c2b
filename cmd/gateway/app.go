package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store/sqlite"
	"github.com/spf13/cobra"
)

// A system is the streams, the environment and the clock of a process.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // whether stdout is a terminal
	columns        int  // of that terminal; 0 if there is none
	watched        bool // whether stderr is a terminal
	attended       bool // whether stdin is a terminal, so that a user can answer
	lookup         func(string) (string, bool)
	clock          core.Clock
	program        string // the words with which the user runs this program; "" means "gateway"
}

// An app is one run of the program.
type app struct {
	system
	*terminal.Screen
	out *terminal.Writer // behind stdout

	// Global flags.
	configFlag, envFlag string
	json                bool

	urlFlag, tokenFlag, tokenFile string // see remote.go

	completing bool // a shell completes words; warnings would appear in the middle of its line

	lock  *sqlite.Lock        // on a server's SQLite file; nil for other commands and databases
	times *core.DatabaseClock // of the store opened last; nil if its times are the machine's
}

// storeClock returns the clock of the store that was opened last. It is the database's clock,
// or this machine's clock for a SQLite file.
func (a *app) storeClock() core.Clock {
	if a.times == nil {
		return a.clock
	}
	return a.times.Now
}

// newApp returns an app with the default flags. Standard output is wrapped once, so that
// cobra's help text and our printing share the memory of a failed write.
func newApp(s system) *app {
	out := terminal.NewWriter(s.stdout)
	s.stdout = out
	a := &app{system: s, out: out}
	a.Screen = &terminal.Screen{
		Program:  "gateway",
		Out:      out,
		Err:      s.stderr,
		Terminal: s.terminal,
		Watched:  s.watched,
		Columns:  s.columns,
		Env:      a.env,
		Clock:    s.clock,
	}
	return a
}

// env returns an environment variable, or "" if it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// configPath returns the file or address of the configuration. The variable replaces the flag,
// so that a container's environment wins over its fixed command line.
func (a *app) configPath() string {
	if path := a.env("GATEWAY_CONFIG"); path != "" {
		return path
	}
	return a.configFlag
}

// noteReplaced warns that the variable replaces the flag -c.
func (a *app) noteReplaced(c *cobra.Command) {
	flag := c.Flags().Lookup("config")
	path := a.env("GATEWAY_CONFIG")
	if path == "" || flag == nil || !flag.Changed || a.configFlag == path || a.remote() || c.Hidden || c.Annotations[ownConfig] != "" {
		return
	}
	// The order of the two is the reverse of the usual one, so the user must learn of it.
	a.Notef("GATEWAY_CONFIG replaces -c: the configuration that the variable names is read") // it names neither value: both may hold keys
}

// configEnv returns the name of the overlay, or "" for none.
func (a *app) configEnv() string {
	if a.envFlag != "" {
		return a.envFlag
	}
	return a.env("GATEWAY_ENV")
}

// hostFS opens files by the names that users type. Unlike os.DirFS it accepts absolute names
// and ../.
type hostFS struct{}

func (hostFS) Open(name string) (fs.File, error) { return os.Open(name) }

// readAll reads at most limit+1 bytes. It returns when ctx ends, although a read from a
// terminal cannot be interrupted.
func readAll(ctx context.Context, r io.Reader, limit int) ([]byte, error) {
	return unlessDone(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, int64(limit)+1)) })
}

// unlessDone returns the result of read, or the error of ctx if ctx ends first.
func unlessDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		got T
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := read()
		done <- result{got, err}
	}()
	select {
	case r := <-done:
		return r.got, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// pathless returns err without the name of the file, for messages that already name it.
func pathless(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
