package memory

import "syscall"

// kilobytesLeft returns the size of the free space of a file system, in KB.
func kilobytesLeft(folder string) (int, error) {
	var fs syscall.Statfs_t
	err := syscall.Statfs(folder, &fs)
	return int(fs.Bavail * uint64(fs.Bsize) >> 10), err
}
