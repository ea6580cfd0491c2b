//go:build !unix

package servers

import (
	"os"
	"os/exec"
)

// Servers are started on Unix alone; elsewhere this compiles and no more.

type sig = os.Signal

var sigKill, sigQuit, sigInt, sigTerm, sigStop, sigCont sig = os.Kill, os.Kill, os.Interrupt, os.Kill, os.Interrupt, os.Interrupt

type account struct{ uid, gid int }

func unprivileged(string) *account         { return nil }
func detach(*exec.Cmd)                     {}
func ownGroup(*exec.Cmd, *account)         {}
func signalGroup(cmd *exec.Cmd, _ sig)     { _ = cmd.Process.Kill() }
func signalOne(int, sig)                   {}
func reap(*exec.Cmd) (status int, ok bool) { return 0, true }
func exists(int) bool                      { return true }
