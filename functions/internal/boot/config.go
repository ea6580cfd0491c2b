package boot

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/config/remote"
	"github.com/eventgateway/gateway/core/egress"
)

// loadConfig reads the configuration. It is the file gateway.yaml that is packaged with the
// function, or the file or http(s) URL in GATEWAY_CONFIG. The format is the same as for the
// gateway as a server; its settings for listening and stopping have no effect in a function.
func (f *function) loadConfig(ctx context.Context) (*config.Config, error) {
	path := cmp.Or(f.env("GATEWAY_CONFIG"), "gateway.yaml")
	lookup := f.secrets.during(ctx)
	c, err := f.readConfig(ctx, path, lookup)
	// Missing secrets come first: an error of the configuration may only follow from them.
	if missing := f.secrets.missing(); missing != nil {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	if err := suits(c); err != nil {
		return nil, err
	}
	c.Database.MaxConnections = min(c.Database.MaxConnections, maxConnections)
	return c, nil
}

func (f *function) readConfig(ctx context.Context, path string, lookup func(string) (string, bool)) (*config.Config, error) {
	if !remote.Is(path) {
		return config.Load(config.Options{FS: taskFS(f.env("LAMBDA_TASK_ROOT")), Path: path, Env: f.env("GATEWAY_ENV"), Lookup: lookup})
	}
	// The operator chose this address, and it may be on a private network.
	client := egress.New(egress.Options{AllowPrivate: true, Version: version()})
	source, err := remote.Open(path, remote.Options{Env: f.env("GATEWAY_ENV"), Lookup: lookup, Client: client})
	if err != nil {
		return nil, core.Refuse(core.Invalid, "GATEWAY_CONFIG: %v", err)
	}
	c, err := source.Load(ctx)
	if wrong := (config.Problems)(nil); err != nil && !errors.As(err, &wrong) {
		return nil, core.Refuse(core.Unavailable, "%v", err)
	}
	return c, err
}

// suits refuses a configuration that no function can work with.
func suits(c *config.Config) error {
	switch c.Database.Driver {
	case "sqlite":
		return core.Refuse(core.Invalid, "database.driver: sqlite is a file on the disk of one machine, and a function has no disk that lasts or that another sees; use hosted_sql or postgres")
	case "mysql":
		return core.Refuse(core.Invalid, "database.driver: mysql is not built into the functions; use hosted_sql or postgres, or run the gateway as a server")
	}
	return nil
}

// taskFS is the folder that the function was unpacked in. Absolute names are outside of it.
type taskFS string

func (root taskFS) Open(name string) (fs.File, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(string(root), name)
	}
	return os.Open(name)
}
