// Command gateway runs and operates an event gateway: one program that serves events, looks
// into its database and sends test events to itself.
//
// The idea to know: every command is a method of an [app]. The app holds all that a command
// may touch of the process: its streams, environment, clock and global flags. The function
// main fills in one app. Tests fill in another and run the same commands in-process, so they
// see the same output as users.
//
// The result of a command goes to standard output: aligned for people or, with --json, as one
// document with the names of the management API. All other text goes to standard error. Text
// from outside is printed only through [terminal.Visible]. A command returns its error. The function
// [run] prints the error and turns it into the exit code.
//
// Commands that look and repair ask an [operator]. It is the services of core/manage on the
// configured database, or a server's management API, which uses the same services there. So
// both give the same answers; TestServerSaysTheSame checks it.
//
// This package may import everything of this module. No package imports it.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// main only turns the result into the exit code: os.Exit runs no deferred calls, so they are in
// process.
func main() { os.Exit(process()) }

// process runs the program with the real streams, environment and clock.
func process() int {
	signal.Ignore(syscall.SIGPIPE) // otherwise a closed pipe would kill the process, in the middle of its work and with another exit code
	// net/http writes unexpected bytes of servers to this logger: a payload would stand between
	// lines of JSON.
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		// The handlers are reset before anything is seen to stop: a second signal kills the
		// process, even if it hangs.
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel()
	}()
	columns, _, _ := term.GetSize(int(os.Stdout.Fd()))
	return run(ctx, os.Args[1:], system{
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stdout.Fd())),
		columns:  columns,
		watched:  term.IsTerminal(int(os.Stderr.Fd())),
		attended: term.IsTerminal(int(os.Stdin.Fd())),
		lookup:   os.LookupEnv,
		clock:    machineClock(),
		program:  typedName(os.Args[0]),
	})
}

// typedName returns the words with which the user can run this program. It returns "" for the
// plain name if PATH leads to this program, otherwise the path by which it was called, such as
// ./gateway.
func typedName(called string) string {
	if !strings.ContainsRune(called, filepath.Separator) {
		return ""
	}
	found, err := exec.LookPath("gateway")
	if err != nil {
		return called
	}
	first, err := os.Stat(found)
	if err != nil {
		return called
	}
	if this, err := os.Stat(called); err != nil || !os.SameFile(first, this) {
		return called
	}
	return ""
}
