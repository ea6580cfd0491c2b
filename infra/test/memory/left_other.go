//go:build !linux

package memory

import "errors"

func kilobytesLeft(string) (int, error) { return 0, errors.ErrUnsupported }
