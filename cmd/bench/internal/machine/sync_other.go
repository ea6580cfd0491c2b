//go:build !linux

package machine

import "os"

func datasync(f *os.File) error { return f.Sync() }
