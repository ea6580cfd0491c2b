package web

import (
	_ "embed" // the description
	"encoding/json"
	"net/http"
	"sync"

	"gopkg.in/yaml.v3"
)

// The description of all routes, OpenAPI 3.1. It is written by hand, and held to the
// routes and to what they answer by tests.
//
//go:embed openapi.yaml
var openAPI []byte

// A description is the same in JSON, made when somebody first asks for it.
type description struct {
	once sync.Once
	text []byte
	err  error
}

func (d *description) json() ([]byte, error) {
	d.once.Do(func() {
		var document any
		if d.err = yaml.Unmarshal(openAPI, &document); d.err == nil {
			d.text, d.err = json.Marshal(document)
		}
	})
	return d.text, d.err
}

func (v *overviewRoutes) describe(w http.ResponseWriter, _ *http.Request) error {
	text, err := v.description.json()
	if err != nil {
		return err
	}
	writePieces(w, [][]byte{text})
	return nil
}
