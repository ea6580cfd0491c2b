package lambda

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"
)

// maxAnswer is how many bytes of JSON the answer of an invocation may have. Lambda
// refuses more, and the process would end of it.
const maxAnswer = 6<<20 + 100

// MaxBody is how many bytes of an answer its body may take, as a text in JSON. The rest is
// for the headers.
const MaxBody = maxAnswer - 16<<10

// An answer is the writer of a reply that is sent as a whole. It keeps to what
// net/http's own writer does with those who write: the first status counts, and the
// header as it is then; a reply without a word is 200; and to HEAD, or with a status that
// has none, there is no body.
type answer struct {
	method string
	header http.Header
	sent   *core.ProxyResponseWriterV2
	status int  // 0 until there is one
	length int  // of the body
	large  bool // more was said than fits
}

func newAnswer(method string) *answer {
	return &answer{method: method, header: http.Header{}, sent: core.NewProxyResponseWriterV2()}
}

// Header is what the reply will have.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader decides the status. Provisional ones are not sent.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	maps.Copy(a.sent.Header(), a.header.Clone())
	for _, name := range ofConnection {
		a.sent.Header().Del(name)
	}
	a.sent.WriteHeader(status)
}

// ofConnection are headers that the front door writes itself, for a connection that is
// its own.
var ofConnection = []string{"Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Date"}

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case len(p) == 0:
		return 0, nil
	case a.length+len(p) > maxAnswer:
		a.large = true
		return 0, errLarge
	}
	a.length += len(p)
	return a.sent.Write(p)
}

// json is the answer of the invocation. It is false if that is more than one may be.
func (a *answer) json() ([]byte, bool) {
	a.WriteHeader(http.StatusOK)
	if a.large {
		return nil, false
	}
	reply, err := a.sent.GetProxyResponse()
	if err != nil {
		return nil, false // cannot be: it has a status
	}
	if a.method == http.MethodHead {
		reply.Body, reply.IsBase64Encoded = "", false
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it would make a fourth more of some bodies
	if err := e.Encode(reply); err != nil || text.Len() > maxAnswer {
		return nil, false
	}
	return text.Bytes(), true
}
