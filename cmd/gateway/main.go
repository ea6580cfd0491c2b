// Command gateway runs and operates an event gateway: one program that serves
// events, looks into its database and sends test events to itself.
//
// The idea to know: every command is a function of an [app], which holds all
// that a command may touch of the process: its streams, environment, clock and
// global flags. main fills one in; tests fill in another and run the same
// commands in-process, so that what they see is what users see.
//
// What a command found out goes to standard output, aligned for people or, with
// --json, as one document with the names of the management API; everything else
// goes to standard error. Text that came from outside is printed through
// [visible] and in no other way. A command returns its error, which [run] prints
// and turns into the exit code.
//
// Commands that look and repair ask an [operator]: the services of core/manage on the
// configured database, or a server's management API, which asks the same services
// there. So both say the same; TestServerSaysTheSame holds them to it.
//
// This package may import everything of this module. Nothing imports it.
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

func main() { os.Exit(process()) }

// process runs the program with what the operating system gives it.
func process() int {
	signal.Ignore(syscall.SIGPIPE) // else a closed pipe kills, whatever is half done, and with a code of its own
	// Here net/http says what servers send unasked, word for word: a payload, between lines of JSON.
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		// Before anything is seen to stop: from here on a signal kills the process,
		// whatever it hangs in.
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

// typedName is what runs this program when it is typed where the user is: the plain name if
// the PATH leads to this program, else the way by which it was called, such as ./gateway.
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
