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

// A configSource is where the configuration comes from. It is safe for concurrent use.
type configSource interface {
	// load reads the configuration as it is now. What is wrong with it is an error of type
	// config.Problems; any other says why it could not be read.
	load(ctx context.Context) (*config.Config, error)

	// changed reports whether there is something else than what load read last, be it valid
	// or not. That of files never is: whoever changes them says so with SIGHUP.
	changed(ctx context.Context) (bool, error)

	// name is its path, or its address without what may be secret in one.
	name() string

	// poll is how long to wait before changed is worth asking, 0 for ever. It is to be asked
	// each time: it varies, so that a fleet does not ask all at once.
	poll() time.Duration
}

// configSource is what -c and its variable name.
func (a *app) configSource() (configSource, error) {
	path := a.configPath()
	if !remote.Is(path) {
		return localConfig{a}, nil
	}
	every, err := a.pollInterval()
	if err != nil {
		return nil, err
	}
	// Whoever gives the address may well mean one inside of this network.
	client := egress.New(egress.Options{AllowPrivate: true, Version: readBuild().Version})
	s, err := remote.Open(path, remote.Options{
		Env: a.configEnv(), Lookup: a.lookup, Client: client, Stores: cloud.Stores(client, a.lookup),
	})
	if err != nil {
		return nil, core.Refuse(core.Invalid, "%v", err)
	}
	return remoteConfig{s, every}, nil
}

// loadConfig reads the configuration and prints nothing. What is wrong with it
// is an error of type config.Problems.
func (a *app) loadConfig(ctx context.Context) (*config.Config, error) {
	s, err := a.configSource()
	if err != nil {
		return nil, err
	}
	return s.load(ctx)
}

// configName is what the configuration is called in front of people.
func (a *app) configName() string {
	s, err := a.configSource()
	if err != nil {
		return "the configuration"
	}
	return s.name()
}

// localConfig is a file.
type localConfig struct{ app *app }

func (l localConfig) load(context.Context) (*config.Config, error) {
	return config.Load(config.Options{FS: hostFS{}, Path: l.name(), Env: l.app.configEnv(), Lookup: l.app.lookup})
}

func (localConfig) changed(context.Context) (bool, error) { return false, nil }
func (l localConfig) name() string                        { return l.app.configPath() }
func (localConfig) poll() time.Duration                   { return 0 }

// remoteConfig is a document at an address.
type remoteConfig struct {
	source *remote.Source
	every  time.Duration
}

func (r remoteConfig) load(ctx context.Context) (*config.Config, error) { return r.source.Load(ctx) }
func (r remoteConfig) changed(ctx context.Context) (bool, error)        { return r.source.Changed(ctx) }
func (r remoteConfig) name() string                                     { return r.source.Name() }

// poll is a tenth more or less than asked for.
func (r remoteConfig) poll() time.Duration { return r.every*9/10 + rand.N(r.every/5) }

const (
	pollVariable = "GATEWAY_CONFIG_POLL"
	defaultPoll  = 30 * time.Second
	leastPoll    = time.Second
	mostPoll     = 24 * time.Hour
)

// pollInterval is how far apart looks at a remote configuration are.
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
