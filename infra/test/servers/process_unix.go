//go:build unix

package servers

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

type sig = syscall.Signal

const (
	sigKill = syscall.SIGKILL
	sigQuit = syscall.SIGQUIT
	sigInt  = syscall.SIGINT
	sigTerm = syscall.SIGTERM
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// An account is the user and group of a server.
type account struct{ uid, gid int }

// unprivileged returns the account for servers that refuse to run as root: the named account
// if the system has it, otherwise the account "nobody". It returns nil if the tests do not run
// as root.
func unprivileged(name string) *account {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, n := range []string{name, "nobody"} {
		if u, err := user.Lookup(n); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &account{uid, gid}
		}
	}
	return &account{65534, 65534}
}

// detach puts a program out of reach of the terminal's Ctrl-C.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func ownGroup(cmd *exec.Cmd, as *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
}

func signalGroup(cmd *exec.Cmd, signal sig) { _ = syscall.Kill(-cmd.Process.Pid, signal) }

func signalOne(pid int, signal sig) { _ = syscall.Kill(pid, signal) }

func reap(cmd *exec.Cmd) (status int, ended bool) {
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WNOHANG, nil)
	switch {
	case errors.Is(err, syscall.ECHILD):
		return -1, true
	case err != nil || pid == 0:
		return 0, false
	case ws.Signaled():
		return 128 + int(ws.Signal()), true
	}
	return ws.ExitStatus(), true
}

func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
