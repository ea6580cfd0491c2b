package cloud

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

// An odd reply is a reply that no object store gives, or a part of a correct one.
type oddReply struct {
	name   string
	header map[string]string
	body   string
}

// oddReplies are replies of a server that poses as an object store.
func oddReplies() []oddReply {
	azure := map[string]string{
		"ETag": `"1"`, "Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT", "X-Ms-Creation-Time": "Mon, 02 Jan 2006 15:04:05 GMT", "X-Ms-Version": "2021-12-02",
	}
	var replies []oddReply
	for name, body := range map[string]string{
		"an empty body": "", "HTML": "<html><body>Sign in</body></html>", "an empty object": "{}", "null": "null", "a list": "[]", "a list of null": "[null]",
		"text": "gateway", "a number": "1e999", "a cut object": `{"name": "k", "size"`, "XML": "<?xml version=\"1.0\"?><Error/>",
		"deep nesting": strings.Repeat("[", 100_000), "bytes": "\x00\xff\xfe\x1f\x8b",
		"wrong types":     `{"name": 1, "size": {}, "generation": [], "metadata": 1, "updated": {}, "md5Hash": 1, "crc32c": null}`,
		"null in fields":  `{"name": null, "bucket": null, "size": null, "generation": null, "metadata": null, "updated": null, "owner": null, "acl": [null], "contexts": null, "retention": null}`,
		"wrong values":    `{"name": "k", "bucket": "b", "size": "-1", "generation": "99999999999999999999999", "updated": "yesterday", "md5Hash": "%", "crc32c": "!!", "customTime": "x"}`,
		"odd lists":       `{"name": "k", "size": "5", "acl": [null, {}, {"projectTeam": null}], "metadata": {"a": null}, "contexts": {"custom": {"a": null}}}`,
		"a negative size": `{"name": "k", "size": "-9223372036854775808", "generation": "-1"}`,
	} {
		replies = append(replies, oddReply{name, nil, body})
	}
	for left := range azure {
		header := maps.Clone(azure)
		delete(header, left)
		replies = append(replies, oddReply{"all headers but " + left, header, "{}"})
		header = maps.Clone(azure)
		header[left] = "\"\\0"
		replies = append(replies, oddReply{"a wrong " + left, header, "{}"})
	}
	for name, value := range map[string]string{
		"Content-Length": "99999999999", "Content-Range": "bytes 9-1/-5", "Content-Md5": "!", "Content-Encoding": "gzip", "Content-Type": "\x01", "Date": "never",
		"X-Goog-Hash": "crc32c=,md5=!,=", "X-Goog-Generation": "x", "X-Goog-Stored-Content-Length": "-1", "X-Goog-Metageneration": "99999999999999999999",
		"X-Amz-Meta-": "", "X-Amz-Checksum-Crc32": "!", "X-Amz-Version-Id": "", "X-Amz-Missing-Meta": "x", "X-Amz-Delete-Marker": "perhaps", "Expires": "0",
		"X-Ms-Blob-Type": "x", "X-Ms-Lease-Duration": "", "X-Ms-Blob-Sequence-Number": "x", "X-Ms-Error-Code": "\"", "X-Ms-Tag-Count": "-1", "X-Ms-Or-": "a", "X-Ms-Or-a_b_c": "", "X-Ms-Meta-": "a",
	} {
		header := maps.Clone(azure)
		header[name] = value
		replies = append(replies, oddReply{"a header " + name, header, "{}"})
	}
	slices.SortFunc(replies, func(a, b oddReply) int { return strings.Compare(a.name, b.name) })
	return replies
}

func (o oddReply) serve(w http.ResponseWriter, r *http.Request) {
	for name, value := range o.header {
		w.Header()[http.CanonicalHeaderKey(name)] = []string{value}
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(o.body))
	}
}

// No reply ends the process, neither at the start nor while the configuration is polled. A
// reply that cannot be read gives an error in a few plain words.
func TestOddReplies(t *testing.T) {
	for _, reply := range oddReplies() {
		for _, address := range []string{"s3://bucket/a/k", "gs://bucket/a/k", "az://accountname/container/a/k"} {
			t.Run(reply.name+" of "+address[:2], func(t *testing.T) {
				there := newRecorder(t, reply.serve)
				s, err := source(t, address+"?endpoint="+there.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time with the client's state after the first reply
					_, err = s.Load(t.Context())
					plain(t, address, err)
					_, err = s.Changed(t.Context())
					plain(t, address, err)
				}
			})
		}
	}
}

// plain checks that an error names the address, and has a few words and no dump.
func plain(t *testing.T, address string, err error) {
	t.Helper()
	if err == nil || errors.As(err, new(config.Problems)) { // the library could read the reply, which is no configuration
		return
	}
	text := err.Error()
	if !strings.HasPrefix(text, address+":") || len(text) > 250 || strings.Contains(text, "goroutine") || strings.Contains(text, "nil pointer") {
		t.Errorf("the error is %q, want a short text that begins with the address", text)
	}
}
