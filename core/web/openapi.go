package web

import (
	_ "embed" // for openapi.yaml
	"encoding/json"
	"net/http"
	"sync"

	"gopkg.in/yaml.v3"
)

// The description of all routes, OpenAPI 3.1. It is written by hand. Tests compare it with
// the routes and their replies.
//
//go:embed openapi.yaml
var openAPI []byte

// A description is the same text in JSON, made at its first use.
type description struct {
	once sync.Once
	text []byte
	err  error
}

// json returns the description. A fault in the embedded text is the same each time.
func (d *description) json() ([]byte, error) {
	// The conversion takes milliseconds, and most processes are never asked for it.
	d.once.Do(func() {
		var document any
		if d.err = yaml.Unmarshal(openAPI, &document); d.err == nil {
			d.text, d.err = json.Marshal(document)
		}
	})
	return d.text, d.err
}

// describe answers with the description of all routes.
func (v *overviewRoutes) describe(w http.ResponseWriter, _ *http.Request) error {
	text, err := v.description.json()
	if err != nil {
		return err
	}
	writePieces(w, [][]byte{text})
	return nil
}
