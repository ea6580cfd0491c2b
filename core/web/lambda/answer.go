package lambda

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"
)

// maxAnswer is the largest answer of an invocation, in bytes of JSON. Lambda refuses a
// larger one, and would end the process.
const maxAnswer = 6<<20 + 100

// MaxBody is the largest body of an answer, in bytes as a JSON string. The other 16 KiB of
// maxAnswer are for the headers.
const MaxBody = maxAnswer - 16<<10

// An answer is the writer of a reply that is sent as a whole. It follows the rules of
// net/http's own writer. The first status counts, with the headers at that time. A reply
// without any write is 200. A reply to HEAD has no body, and neither has a reply with a
// status that permits none.
type answer struct {
	method string
	header http.Header
	sent   *core.ProxyResponseWriterV2
	status int  // 0 until it is set
	length int  // of the body
	large  bool // the body is larger than fits
}

// newAnswer returns an answer without a status, for a request with this method.
func newAnswer(method string) *answer {
	return &answer{method: method, header: http.Header{}, sent: core.NewProxyResponseWriterV2()}
}

// Header returns the headers of the reply.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status. Provisional statuses are not sent.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	// The headers count as they are now. Later changes are lost, as on a connection.
	maps.Copy(a.sent.Header(), a.header.Clone())
	for _, name := range ofConnection {
		a.sent.Header().Del(name)
	}
	a.sent.WriteHeader(status)
}

// ofConnection are headers that the front door writes for its own connection.
var ofConnection = []string{"Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Date"}

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case len(p) == 0:
		return 0, nil
	// The reply cannot be sent. From here on only the fact counts: see Answer.
	case a.length+len(p) > maxAnswer:
		a.large = true
		return 0, errLarge
	}
	a.length += len(p)
	return a.sent.Write(p)
}

// json returns the answer of the invocation. It returns false if the answer is larger than
// maxAnswer.
func (a *answer) json() ([]byte, bool) {
	a.WriteHeader(http.StatusOK)
	if a.large {
		return nil, false
	}
	reply, err := a.sent.GetProxyResponse()
	if err != nil {
		return nil, false // impossible: it has a status
	}
	if a.method == http.MethodHead {
		reply.Body, reply.IsBase64Encoded = "", false
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it would enlarge some bodies by a fourth
	if err := e.Encode(reply); err != nil || text.Len() > maxAnswer {
		return nil, false
	}
	return text.Bytes(), true
}
