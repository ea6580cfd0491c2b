package config

import (
	"bytes"
	"os"
	"strings"
)

// An archive is a txtar file: a comment, then files each under a "-- name --" line. The format is five lines to read,
// so the tests need no dependency for it.
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, data string }

func readArchive(name string) (*archive, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	a := &archive{}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		file, ends := strings.CutSuffix(rest, " --")
		switch {
		case ok && ends && file != "":
			a.files = append(a.files, archived{name: file})
		case len(a.files) == 0:
			a.comment += line
		default:
			a.files[len(a.files)-1].data += line
		}
	}
	return a, nil
}

func (a *archive) write(name string) error {
	var b bytes.Buffer
	b.WriteString(a.comment)
	for _, f := range a.files {
		b.WriteString("-- " + f.name + " --\n" + f.data)
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

func (a *archive) has(name string) bool {
	for _, f := range a.files {
		if f.name == name {
			return true
		}
	}
	return false
}
