package cloud

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

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

// open makes a client without credentials. The retries and the telemetry of the library are
// switched off.
func (azure) open(ctx context.Context, p place, calls *http.Client) (*blob.Bucket, error) {
	account, folder, _ := strings.Cut(p.bucket, "/")
	endpoint := "https://" + account + ".blob.core.windows.net"
	if p.endpoint != "" {
		endpoint = strings.TrimRight(p.endpoint, "/")
	}
	client, err := container.NewClientWithNoCredential(endpoint+"/"+folder, &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: calls,
		Retry:     policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}})
	if err != nil {
		return nil, err
	}
	return azureblob.OpenBucket(ctx, client, nil)
}

// reading needs no options.
func (azure) reading(*blob.Attributes) *blob.ReaderOptions { return nil }
