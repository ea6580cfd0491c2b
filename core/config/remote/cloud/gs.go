package cloud

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/option"
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
// lack its scheme. It is passed to them explicitly, after it was checked here.
func (g google) emulator() string {
	host := g.env("STORAGE_EMULATOR_HOST")
	if host != "" && !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return host
}

// open makes a client without credentials, retries and metrics.
func (google) open(ctx context.Context, p place, calls *http.Client) (*blob.Bucket, error) {
	options := []option.ClientOption{
		option.WithHTTPClient(calls),
		option.WithoutAuthentication(), // otherwise it looks for credentials on disk and at the metadata service
		storage.WithDisabledClientMetrics(),
	}
	if p.endpoint != "" {
		options = append(options, option.WithEndpoint(p.endpoint+"/storage/v1/"))
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return gcsblob.OpenBucket(ctx, nil, p.bucket, &gcsblob.Options{Client: client})
}

// reading requests the generation that was found. Without it caches may answer, which Google
// permits for an hour for a public object.
func (google) reading(found *blob.Attributes) *blob.ReaderOptions {
	var attributes storage.ObjectAttrs
	if !found.As(&attributes) {
		return nil
	}
	return &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var object **storage.ObjectHandle
		if !as(&object) {
			return errors.New("its version cannot be requested")
		}
		*object = (*object).Generation(attributes.Generation)
		return nil
	}}
}
