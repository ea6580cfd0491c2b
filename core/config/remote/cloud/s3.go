package cloud

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/eventgateway/gateway/core/once"
)

// amazon has S3's buckets, and with an endpoint the buckets of compatible stores:
// s3://bucket/key, ?region= and ?endpoint=.
type amazon struct{ env func(string) string }

// parameters has the region too, since S3 answers only in the region of a bucket.
func (amazon) parameters() []string { return []string{"endpoint", "region"} }

var regionForm = once.Regexp(`^[a-z0-9-]+$`)

// locate takes the region and the endpoint from the address, and else from the variables of
// AWS's own tools.
func (a amazon) locate(u *url.URL) (place, error) {
	p, err := object(u)
	if err != nil {
		return place{}, err
	}
	p.region = cmp.Or(u.Query().Get("region"), a.env("AWS_REGION"), a.env("AWS_DEFAULT_REGION"), "us-east-1")
	p.endpoint = cmp.Or(p.endpoint, a.env("AWS_ENDPOINT_URL_S3"))
	if !regionForm().MatchString(p.region) {
		return place{}, errors.New("has no valid region; a region is a name such as eu-west-1")
	}
	return p, nil
}

// open makes a client with anonymous credentials and without retries.
func (amazon) open(ctx context.Context, p place, calls *http.Client) (*blob.Bucket, error) {
	o := s3.Options{
		Region:      p.region,
		Credentials: aws.AnonymousCredentials{},
		HTTPClient:  calls,
		Retryer:     aws.NopRetryer{},
		// TLS's wildcards do not cover the name of a bucket with a dot.
		UsePathStyle:               p.endpoint != "" || strings.Contains(p.bucket, "."),
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired, // which compatible stores lack
	}
	if p.endpoint != "" {
		o.BaseEndpoint = &p.endpoint
	}
	return s3blob.OpenBucket(ctx, s3.New(o), p.bucket, nil)
}
