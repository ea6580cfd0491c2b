package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
)

var (
	errTooLarge   = core.Refuse(core.TooLarge, "Payload too large")
	errEncoding   = core.Refuse(core.Unsupported, "Unsupported content encoding")
	errIncomplete = &core.Refusal{Kind: core.Invalid, Message: "request body is incomplete or malformed", Cause: intake.ErrMalformed}
)

// body reads the body of a request, which is at most MaxBodySize bytes of no
// encoding: a signature is over the bytes as sent, and a few bytes of gzip may
// be a thousand times as many.
func (d *Door) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if encoded(r.Header) {
		return nil, errEncoding
	}
	if r.ContentLength > d.MaxBodySize {
		return nil, errTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := d.read(w, r)
	var limit *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &limit):
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	default:
		return nil, errIncomplete
	}
}

// optional reads a body that is a JSON object of known fields, or left out. There is
// nothing to be asked for beside it.
func (d *Door) optional(w http.ResponseWriter, r *http.Request, known ...string) (fields, error) {
	if err := unasked(r, known); err != nil {
		return nil, err
	}
	body, err := d.body(w, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	return fieldsOf(body, known...)
}

func (d *Door) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, d.MaxBodySize))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

func encoded(h http.Header) bool {
	for _, e := range h["Content-Encoding"] {
		if e != "" && !strings.EqualFold(e, "identity") {
			return true
		}
	}
	return false
}
