package cloud

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"gocloud.dev/blob"

	"github.com/eventgateway/gateway/core/once"
)

// azure has the containers of Azure Blob Storage: az://account/container/blob, and
// ?endpoint= for an account that is elsewhere than https://account.blob.core.windows.net.
type azure struct{}

// parameters has no region: the account's name determines it.
func (azure) parameters() []string { return []string{"endpoint"} }

var (
	// The forms check the characters only. The provider checks the lengths.
	accountForm   = once.Regexp(`^[a-z0-9]+$`)
	containerForm = once.Regexp(`^([a-z0-9][a-z0-9-]*[a-z0-9]|\$root|\$web)$`)
)

// locate splits the path at its first slash: the container, and the name of the blob, which may
// contain slashes.
func (azure) locate(u *url.URL) (place, error) {
	folder, key, found := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case !accountForm().MatchString(u.Host):
		return place{}, errors.New("has no valid storage account name after ://; such a name holds a-z and 0-9")
	case !found:
		return place{}, errors.New("must name a blob, as in az://account/container/gateway.yaml")
	case !containerForm().MatchString(folder):
		return place{}, errors.New("has no valid container name after the account; such a name holds a-z, 0-9 and -")
	}
	return place{bucket: u.Host + "/" + folder, key: key, endpoint: u.Query().Get("endpoint")}, nil
}

// open uses the requests [Get Blob Properties] and Get Blob.
//
// [Get Blob Properties]: https://learn.microsoft.com/en-us/rest/api/storageservices/get-blob-properties
func (azure) open(_ context.Context, p place, calls *http.Client) (*blob.Bucket, error) {
	account, folder, _ := strings.Cut(p.bucket, "/")
	object := cmp.Or(strings.TrimRight(p.endpoint, "/"), "https://"+account+".blob.core.windows.net") + "/" + folder + "/" + url.PathEscape(p.key)
	return (&direct{
		calls: calls, method: http.MethodHead, address: object,
		header: http.Header{"X-Ms-Version": {azureVersion}},
		described: func(reply *http.Response) (etag, content string, err error) {
			etag = reply.Header.Get("ETag")
			if etag == "" {
				return "", "", errors.New("the reply has no ETag")
			}
			return etag, object, nil
		},
	}).open(), nil
}

// azureVersion is the version of the requests. Without it Azure answers as its oldest version does.
const azureVersion = "2021-12-02"
