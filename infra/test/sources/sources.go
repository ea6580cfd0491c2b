// Package sources makes the result of a test depend on the sources of the programs that it has built
// and starts. Only tests import it, and it imports nothing of this module.
//
// The idea to know: go test keeps a result, and shows it again while the packages of the test and the
// files that the test opened are the same. A program that the test builds with "go build" is neither.
// So the test opens the folders of its sources: then go test compares the names, sizes and times of
// all files in them.
package sources

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// folders are the folders of the module that have sources of programs.
var folders = []string{"cmd", "core", "functions", "proto", "store"}

// Open opens the folders of all sources of the module in whose folder, or below it, the test runs.
// Only calls by tests count: go test does not watch a TestMain before it runs them. Later calls
// return the result of the first.
var Open = sync.OnceValue(open)

func open() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.sum")); err != nil {
		return err
	}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// moduleRoot returns the folder of the module.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod here, nor in a folder above")
		}
		dir = up
	}
}
