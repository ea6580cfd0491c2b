package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store/sqlite"
	"github.com/spf13/cobra"
)

// A system is what the operating system gives a process.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // whether stdout is one
	columns        int  // of that terminal; 0 if there is none
	watched        bool // whether stderr is one
	attended       bool // whether stdin is one, so that somebody can answer
	lookup         func(string) (string, bool)
	clock          core.Clock
	program        string // what the user types to run this program; "" is "gateway"
}

// An app is one run of the program.
type app struct {
	system
	out *checkedWriter // what stdout is

	// Global flags.
	configFlag, envFlag string
	json, noColor       bool

	urlFlag, tokenFlag, tokenFile string // see remote.go

	completing bool // words are completed in a shell, which shows warnings in the middle of a line

	lock  *sqlite.Lock        // of a server's SQLite file; nil for other commands and databases
	times *core.DatabaseClock // of the store opened last; nil if its times are the machine's
}

// storeClock is the clock of the store that was opened last: the database's, or for a SQLite
// file this machine's.
func (a *app) storeClock() core.Clock {
	if a.times == nil {
		return a.clock
	}
	return a.times.Now
}

func newApp(s system) *app {
	out := &checkedWriter{w: s.stdout}
	s.stdout = out
	return &app{system: s, out: out}
}

// env returns a variable of the environment, "" if it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// configPath is the file or address the configuration is read from. The variable replaces
// the flag, so that a container's environment wins over its fixed command line.
func (a *app) configPath() string {
	if path := a.env("GATEWAY_CONFIG"); path != "" {
		return path
	}
	return a.configFlag
}

// noteReplaced says that the variable replaces a flag that was given.
func (a *app) noteReplaced(c *cobra.Command) {
	flag := c.Flags().Lookup("config")
	path := a.env("GATEWAY_CONFIG")
	if path == "" || flag == nil || !flag.Changed || a.configFlag == path || a.remote() || c.Hidden {
		return
	}
	a.notef("GATEWAY_CONFIG replaces -c: the configuration that the variable names is read") // both may hold keys
}

// configEnv is the name of the overlay, "" for none.
func (a *app) configEnv() string {
	if a.envFlag != "" {
		return a.envFlag
	}
	return a.env("GATEWAY_ENV")
}

// hostFS is the machine's file system under the names users type, absolute ones
// and ../ included, which os.DirFS has no way to say.
type hostFS struct{}

func (hostFS) Open(name string) (fs.File, error) { return os.Open(name) }

// readAll reads at most one byte more than limit. Unlike the reader itself it
// gives up when ctx ends: nobody can interrupt a read from a terminal.
func readAll(ctx context.Context, r io.Reader, limit int) ([]byte, error) {
	return unlessDone(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, int64(limit)+1)) })
}

// unlessDone is what read returns, or the error of ctx if that ends first.
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

// checkedWriter remembers that a write failed, so that printing code need not
// look and a full disk still ends in an error.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	c.err = err
	return n, err
}

// pathless is err without the name of the file that a message already has.
func pathless(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
