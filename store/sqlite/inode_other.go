//go:build !linux && !darwin

package sqlite

// There are no locks of open files.
const (
	setLock  = 0
	findLock = 0
)
