package config

import (
	"maps"
	"reflect"
	"slices"
)

// Same reports whether another configuration has the same meaning, so that a process need not
// change anything for it.
func (c *Config) Same(other *Config) bool {
	return same(reflect.ValueOf(c), reflect.ValueOf(other)) && reflect.DeepEqual(c.definitions(), other.definitions())
}

// definitions returns the texts of the workflows, which also differ if only the name of a
// variable has changed. It is nil for a Config that Load did not make.
func (c *Config) definitions() any {
	if c.origin == nil {
		return nil
	}
	return c.origin.definitions
}

// Forbids returns the changes that a running program refuses, sorted by file and line: changes
// that it cannot make, and changes that remove a lock or all sources. A file that is reloaded
// may contain a mistake, and the mistake must neither open a source to everyone nor refuse
// every sender. A restart of the program makes such a change.
//
// A remote configuration may not let in one more address either, unless GATEWAY_CONFIG_ALLOW
// lists server.trusted_proxies or sources.*.allowed_ips. A source that was taken away while the
// gateway runs keeps its last allowed_ips for this check.
func (c *Config) Forbids(next *Config) Problems {
	r := &report{}
	g := guard{checker{Config: next, report: r}, c}
	if next.remote() {
		g.proxies()
	}
	g.fixed()
	g.locks()
	if len(c.Sources) > 0 && len(next.Sources) == 0 {
		g.problem("sources", "cannot all be removed while the gateway runs: a file that is only partly written looks the same; restart it to apply this")
	}
	for _, s := range next.SortedSources() {
		// A new source may have any settings.
		if was, known := g.was(s.Name); known && s.Type != "cron" { // a schedule has no senders
			g.source(was, s)
			g.senders(was, s)
		}
	}
	return r.sorted()
}

// remote reports whether a configuration was read from elsewhere than the machine's own files.
func (c *Config) remote() bool { return c.origin != nil && c.origin.allowed != nil }

// Follow lets c remember the earlier sources, for Forbids. Otherwise a change could take a
// source away, and the next change could bring it back open to more addresses. The caller calls
// it when c replaces another configuration.
func (c *Config) Follow(before *Config) {
	if !c.remote() {
		return
	}
	c.origin.former = map[string]Source{}
	if before.origin != nil {
		maps.Copy(c.origin.former, before.origin.former)
	}
	for name, s := range before.Sources {
		if s.Type != "cron" {
			c.origin.former[name] = s
		}
	}
	for name, s := range c.Sources {
		if s.Type != "cron" {
			delete(c.origin.former, name)
		}
	}
}

// was returns the present source of a name, or its last version before it was removed or became
// a schedule.
func (g guard) was(name string) (Source, bool) {
	if g.now.origin != nil {
		if s, gone := g.now.origin.former[name]; gone {
			return s, true
		}
	}
	s, known := g.now.Sources[name]
	return s, known
}

// proxies reports a remote configuration that trusts other proxies. With a list, the gateway
// trusts the listed proxies and passes over their entries. Without a list it trusts exactly one
// proxy, at any address. So neither list contains the other if one of them is empty.
func (g guard) proxies() {
	was, is := g.now.Server.TrustedProxies, g.Server.TrustedProxies
	more := !within(is, was) || len(is) == 0 && len(was) > 0
	if path := "server.trusted_proxies"; more && !g.origin.allowed.allows(path) {
		g.problem(path, "cannot trust other proxies while the gateway follows a remote configuration: clients could claim any address; restart it to apply this, or list %s in %s where it runs", path, allowVariable)
	}
}

// A guard compares the next configuration with the present one. It reports like a checker. Its
// Config is the next configuration, so that problems have the positions of the new file.
type guard struct {
	checker
	now *Config
}

// fixed reports changed fields that a running program cannot change.
func (g guard) fixed() {
	was, is := g.now.Database, g.Database
	// These are opened once, at the start of the program.
	for _, f := range []struct {
		path string
		same bool
	}{
		{"database.driver", was.Driver == is.Driver},
		{"database.url", was.URL == is.URL},
		{"database.max_connections", was.MaxConnections == is.MaxConnections},
		{"database.account_id", was.AccountID == is.AccountID},
		{"database.database_id", was.DatabaseID == is.DatabaseID},
		{"database.api_token", was.APIToken == is.APIToken},
		{"database.hosted_sql_endpoint", was.HostedSQLEndpoint == is.HostedSQLEndpoint},
		{"server.host", g.now.Server.Host == g.Server.Host},
		{"server.port", g.now.Server.Port == g.Server.Port},
	} {
		if !f.same {
			g.problem(f.path, "cannot change while the gateway runs; restart it to apply this")
		}
	}
}

// locks reports tokens and keys that the change removes.
func (g guard) locks() {
	// Tokens with roles may take the place of those with all rights, and the other way round.
	if lock := "api.tokens"; g.now.API.Locked() && !g.API.Locked() {
		if len(g.now.API.AuthToken) > 0 {
			lock = "api.auth_token"
		}
		g.removed(lock)
	}
	g.notRemoved("api.metrics_auth_token", g.now.API.MetricsAuthToken, g.API.MetricsAuthToken)
	for _, q := range g.SortedQueues() {
		g.notRemoved(join("queues", q.Name)+".api_key", g.now.Queues[q.Name].APIKey, q.APIKey)
	}
}

// notRemoved reports secrets that protected something and are removed. A changed secret is
// permitted: users rotate secrets.
func (g guard) notRemoved(path string, was, is Secrets) {
	if len(was) > 0 && len(is) == 0 {
		g.removed(path)
	}
}

// removed reports secrets that are removed.
func (g guard) removed(path string) {
	g.problem(path, "cannot be removed while the gateway runs: everyone would have access; restart it to apply this")
}

// source reports a source that verified its senders and would stop doing so.
func (g guard) source(was, is Source) {
	path := join("sources", is.Name)
	// Events of type event are protected by the API's token and not by their source.
	token := was.Type == "event" && g.now.API.Locked()
	switch {
	case !was.verified() && !token || is.verified():
	case token && is.Type == "event": // see locks
	case was.Type != is.Type:
		g.problem(path+".type", "cannot become %s while the gateway runs: its senders would not be verified any more; restart it to apply this", is.Type)
	case is.SkipVerify:
		g.problem(path+".skip_verify", "cannot be switched on while the gateway runs: everyone could send; restart it to apply this")
	default:
		g.problem(path+".verify", "cannot be removed while the gateway runs: everyone could send; restart it to apply this")
	}
}

// senders reports a source that accepted only some addresses or topics and would accept any.
// Any other list is permitted: the permitted senders change, but there is still a limit.
func (g guard) senders(was, is Source) {
	path := join("sources", is.Name)
	switch at := path + ".allowed_ips"; {
	// The author of a remote configuration may only narrow the permitted addresses.
	case g.remote():
		if !within(allowedBy(is), allowedBy(was)) && !g.origin.allowed.allows(at) {
			g.problem(at, "cannot accept other addresses while the gateway follows a remote configuration; restart it to apply this, or list %s in %s where it runs", at, allowVariable)
		}
	case !unlimited(was.AllowedIPs) && unlimited(is.AllowedIPs):
		g.problem(path+".allowed_ips", "cannot accept every address while the gateway runs; restart it to apply this")
	}
	if len(was.TopicARNs) > 0 && len(is.TopicARNs) == 0 && is.Type == "sns" {
		g.problem(path+".topic_arns", "cannot be removed while the gateway runs: every topic would be accepted, of other accounts too; restart it to apply this")
	}
}

// allowedBy returns the networks from which a source accepts requests.
func allowedBy(s Source) []Network {
	if len(s.AllowedIPs) == 0 {
		return everyAddress
	}
	return s.AllowedIPs
}

// unlimited reports whether a list of networks contains every address, of IPv4 or of IPv6.
func unlimited(networks []Network) bool {
	return len(networks) == 0 || slices.ContainsFunc(networks, func(n Network) bool { return n.Bits() == 0 })
}

// verified reports whether the source verifies its senders.
func (s Source) verified() bool {
	switch s.Type {
	case "webhook":
		return s.Verify != ""
	case "sns":
		return !s.SkipVerify
	}
	return false
}
