package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/config/remote"
	"github.com/eventgateway/gateway/core/config/remote/cloud"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/units"
)

// A configSource is the file or the address of the configuration. It is safe for concurrent
// use.
type configSource interface {
	// load reads the present configuration. An invalid configuration is an error of type
	// config.Problems. Any other error means that it could not be read.
	load(ctx context.Context) (*config.Config, error)

	// changed reports whether the configuration differs from the last result of load, valid or
	// not. For files it returns false: the user reports a change with SIGHUP.
	changed(ctx context.Context) (bool, error)

	// name returns the path, or the address without parts that may be secret.
	name() string

	// poll returns the pause until the next call of changed; 0 means never. The caller calls
	// poll for each pause: it varies, so that the processes of a fleet do not all ask at once.
	poll() time.Duration
}

// configSource returns the source that -c or its variable names.
func (a *app) configSource() (configSource, error) { return a.configAt(a.configPath()) }

// configAt returns the source at a path or address.
func (a *app) configAt(path string) (configSource, error) {
	if !remote.Is(path) {
		return localConfig{a, path}, nil
	}
	// A mistake in the variable is reported before any request.
	every, err := a.pollInterval()
	if err != nil {
		return nil, err
	}
	// The operator chose this address, and it may be on a private network.
	client := egress.New(egress.Options{AllowPrivate: true, Version: readBuild().Version})
	s, err := remote.Open(path, remote.Options{
		Env: a.configEnv(), Lookup: a.lookup, Client: client, Stores: cloud.Stores(client, a.lookup),
	})
	if err != nil {
		return nil, core.Refuse(core.Invalid, "%v", err)
	}
	return remoteConfig{s, every}, nil
}

// loadConfig reads the configuration and prints nothing. An invalid configuration is an error
// of type config.Problems.
func (a *app) loadConfig(ctx context.Context) (*config.Config, error) {
	s, err := a.configSource()
	if err != nil {
		return nil, err
	}
	return s.load(ctx)
}

// configName returns the name of the configuration for messages.
func (a *app) configName() string {
	s, err := a.configSource()
	if err != nil {
		return "the configuration"
	}
	return s.name()
}

// localConfig is a configuration in a file.
type localConfig struct {
	app  *app
	path string
}

// load reads the file and its overlays; see config.Load.
func (l localConfig) load(context.Context) (*config.Config, error) {
	return config.Load(config.Options{FS: hostFS{}, Path: l.name(), Env: l.app.configEnv(), Lookup: l.app.lookup})
}

func (localConfig) changed(context.Context) (bool, error) { return false, nil }
func (l localConfig) name() string                        { return l.path }
func (localConfig) poll() time.Duration                   { return 0 }

// remoteConfig is a configuration at an address.
type remoteConfig struct {
	source *remote.Source
	every  time.Duration
}

// load reads the document at the address; see remote.Source.
func (r remoteConfig) load(ctx context.Context) (*config.Config, error) { return r.source.Load(ctx) }
func (r remoteConfig) changed(ctx context.Context) (bool, error)        { return r.source.Changed(ctx) }
func (r remoteConfig) name() string                                     { return r.source.Name() }

// poll returns the interval, changed by a random amount of up to 10 %.
func (r remoteConfig) poll() time.Duration { return r.every*9/10 + rand.N(r.every/5) }

const (
	// The bounds keep a fleet from asking an object store too often, and an operator from
	// waiting more than a day for a change.
	pollVariable = "GATEWAY_CONFIG_POLL"
	defaultPoll  = 30 * time.Second
	leastPoll    = time.Second
	mostPoll     = 24 * time.Hour
)

// pollInterval returns the time between two looks at a remote configuration. The default is 30
// s.
func (a *app) pollInterval() (time.Duration, error) {
	text := a.env(pollVariable)
	if text == "" {
		return defaultPoll, nil
	}
	d, err := units.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the environment variable %s %w", pollVariable, err)
	case d.Duration < leastPoll || d.Duration > mostPoll:
		return 0, core.Refuse(core.Invalid, "the environment variable %s must be from 1s to 1d", pollVariable)
	}
	return d.Duration, nil
}
