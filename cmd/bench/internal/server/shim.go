package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// shimSource makes each fsync and fdatasync of a process that loads it take a millisecond
// longer, even if signals arrive. With PROBE it is a program that counts syncs, through the
// C library as the server does.
const shimSource = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PROBE
static int later(int result)
{
	int kept = errno;
	struct timespec left = {0, 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	errno = kept;
	return result;
}

int fsync(int fd) { return later(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return later(syscall(SYS_fdatasync, fd)); }
#else
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char block[8192];
	double limit = atof(argv[2]), start = now();
	int n = 0, fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
	for (; n < 8192 && now() - start < limit; n++)
		if (write(fd, block, sizeof block) != sizeof block || fdatasync(fd) != 0)
			return 1;
	printf("%f\n", n / (now() - start));
	return 0;
}
#endif
`

// shim is the result of building shimSource. A library before the C library, and not a slow
// device: a device needs root, and would slow reads as well.
type shim struct{ library, probe string }

// buildShim compiles both into dir. Without a compiler the medium is left out.
func buildShim(ctx context.Context, dir string) (*shim, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, leftOut("gcc is missing: it builds what makes syncs slower (apt-get install gcc libc6-dev)")
	}
	source := filepath.Join(dir, "slow.c")
	s := &shim{library: filepath.Join(dir, "slow.so"), probe: filepath.Join(dir, "probe")}
	if err := os.WriteFile(source, []byte(shimSource), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"-shared", "-fPIC", "-o", s.library}, {"-DPROBE", "-o", s.probe}} {
		if out, err := exec.CommandContext(ctx, gcc, append(args, "-O2", source)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build what makes syncs slower: %w\n%s", err, out)
		}
	}
	// The server may run as another user.
	return s, os.Chmod(s.library, 0o755)
}

// env returns the environment of a process with slow syncs.
func (s *shim) env() []string {
	if s == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + s.library}
}

// syncRate runs the probe under the library. This program itself could not: Go makes its system
// calls without the C library.
func (s *shim) syncRate(ctx context.Context, dir string, limit time.Duration) (float64, error) {
	file := filepath.Join(dir, "probed")
	defer os.Remove(file)
	cmd := exec.CommandContext(ctx, s.probe, file, strconv.FormatFloat(limit.Seconds(), 'f', 3, 64))
	cmd.Env = append(os.Environ(), s.env()...)
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("count syncs: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}
