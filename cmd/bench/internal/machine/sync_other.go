//go:build !linux

package machine

import "os"

// datasync syncs data and metadata, where there is no system call for the data alone.
func datasync(f *os.File) error { return f.Sync() }
