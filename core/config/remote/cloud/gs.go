package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gocloud.dev/blob"

	"github.com/eventgateway/gateway/core/once"
)

// google has the buckets of Google Cloud Storage: gs://bucket/object and ?endpoint=.
type google struct{ env func(string) string }

// parameters has only the endpoint, for emulators.
func (google) parameters() []string { return []string{"endpoint"} }

// locate takes the endpoint from the address, and else from the emulator's variable.
func (g google) locate(u *url.URL) (place, error) {
	p, err := object(u)
	p.endpoint = strings.TrimRight(cmp.Or(p.endpoint, g.emulator()), "/")
	return p, err
}

// emulator returns the endpoint that Google's libraries read from the environment, where it may
// lack its scheme.
func (g google) emulator() string {
	host := g.env("STORAGE_EMULATOR_HOST")
	if host != "" && !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return host
}

// open uses Google's [JSON API]. The second request names the generation that the first one described.
// Without a generation a cache may answer, which Google permits for an hour for a public object.
//
// [JSON API]: https://cloud.google.com/storage/docs/json_api/v1/objects/get
func (google) open(_ context.Context, p place, calls *http.Client) (*blob.Bucket, error) {
	object := cmp.Or(p.endpoint, "https://storage.googleapis.com") + "/storage/v1/b/" + url.PathEscape(p.bucket) + "/o/" + url.PathEscape(p.key)
	d := &direct{calls: calls, method: http.MethodGet, address: object + "?alt=json&fields=etag,generation"}
	d.described = func(reply *http.Response) (etag, content string, err error) {
		text, err := io.ReadAll(io.LimitReader(reply.Body, maxDescription))
		if err != nil {
			return "", "", err
		}
		var found struct{ ETag, Generation string }
		if err := json.Unmarshal(text, &found); err != nil {
			return "", "", err
		}
		if !generationForm().MatchString(found.Generation) {
			return "", "", errors.New("the description of the object has no generation")
		}
		return found.ETag, object + "?alt=media&generation=" + found.Generation, nil
	}
	return d.open(), nil
}

// maxDescription bounds the bytes of the description of an object, which has a few dozen.
const maxDescription = 64 << 10

var generationForm = once.Regexp(`^[0-9]+$`)
