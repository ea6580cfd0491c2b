package config

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Config is a gateway.yaml, merged, expanded, defaulted and validated. It is not changed after
// Load.
type Config struct {
	// Database says where events and jobs are stored.
	Database Database `yaml:"database"`
	// Server is the HTTP listener and its limits.
	Server Server `yaml:"server"`
	// API holds the tokens of intake, management API and metrics.
	API API `yaml:"api"`
	// Delivery has the settings that all handlers share.
	Delivery Delivery `yaml:"delivery"`
	// Worker bounds the delivery of jobs.
	Worker Worker `yaml:"worker"`
	// Sources are the entrances for events, by name.
	Sources map[string]Source `yaml:"sources"`
	// Handlers are the URLs to which events are delivered, by name.
	Handlers map[string]Handler `yaml:"handlers"`
	// Queues are the queues from which consumers receive messages, by name.
	Queues map[string]Queue `yaml:"queues"`
	// Alerts are posted when an operator should act. The file may give one mapping or a list.
	Alerts []Alert `yaml:"alerts" single:""`
	// Console serves the operator console at /console, default false. Without a token of the API it
	// needs a server.host of this machine.
	Console bool `yaml:"console"`
	// Workflows are pipelines started by an event, by name.
	Workflows map[string]Workflow `yaml:"workflows"`

	// DotEnv holds the variables that .env.<name> set because the environment lacked them, for
	// a caller that wants other parts of the program (log settings, trace export) to see them
	// too.
	DotEnv map[string]Secret `yaml:"-"`

	origin *origin // where each field was written; nil if not made by Load
}

// Database says where events and jobs are stored.
type Database struct {
	// Driver is sqlite (default), postgres, mysql or hosted_sql (alias d1).
	Driver string `yaml:"driver" oneof:"sqlite postgres mysql hosted_sql" also:"d1=hosted_sql"`
	// URL is the address of the database, required for postgres and mysql. For sqlite it is a
	// file, bare or after "file:" or "sqlite:", default gateway.db; see SQLitePath. It is a
	// Secret because it may hold a password.
	URL Secret `yaml:"url"`
	// MaxConnections is the pool size, 1 to 1000, default 10.
	MaxConnections int `yaml:"max_connections" range:"1 1000"`
	// AccountID is required for hosted_sql without HostedSQLEndpoint.
	AccountID string `yaml:"account_id"`
	// DatabaseID is required for hosted_sql without HostedSQLEndpoint.
	DatabaseID string `yaml:"database_id"`
	// APIToken is the bearer token of hosted_sql, required without HostedSQLEndpoint.
	APIToken Secret `yaml:"api_token"`
	// HostedSQLEndpoint is the URL of a proxy that takes the place of hosted_sql's own API.
	HostedSQLEndpoint string `yaml:"hosted_sql_endpoint"`
}

// Server is the HTTP listener and its limits.
type Server struct {
	// Host is the address or host name to listen on, default all interfaces.
	Host string `yaml:"host"`
	// Port is the port to listen on, 1 to 65535, default 8888.
	Port int `yaml:"port" range:"1 65535"`
	// PublicURL is the address the outside reaches this server by, without a trailing slash;
	// default none.
	PublicURL string `yaml:"public_url"`
	// MaxBodySize is the largest request body in bytes, 1 to 104857600 (100 MiB), default
	// 1048576 (1 MiB).
	MaxBodySize int `yaml:"max_body_size" range:"1 104857600"`
	// MaxInbound is how many requests are served at once, 1 to 100000, default 100.
	MaxInbound int `yaml:"max_inbound" range:"1 100000"`
	// IPRateLimit is requests per second of one client address, 0 to 1000000, default 0: no
	// limit.
	IPRateLimit int `yaml:"ip_rate_limit" range:"0 1000000"`
	// AllowPrivateURLs lets outbound calls reach private and loopback addresses, default false.
	AllowPrivateURLs bool `yaml:"allow_private_urls"`
	// TrustProxy takes the client address from X-Forwarded-For and X-Real-IP, default false.
	TrustProxy bool `yaml:"trust_proxy"`
	// TrustedProxies are the proxies whose entries in X-Forwarded-For are skipped, default
	// none: exactly one hop.
	TrustedProxies []Network `yaml:"trusted_proxies"`
	// Echo serves a receiver for trying things out at /_echo, default false.
	Echo bool `yaml:"echo"`
}

// API holds the tokens of intake, management API and metrics.
type API struct {
	// AuthToken is the bearer token of /events and the management API, or several of which each
	// is accepted. It has all rights. Without it and without Tokens both are open.
	AuthToken Secrets `yaml:"auth_token"`
	// Tokens are further tokens of /events and the management API, each with a role.
	Tokens []Token `yaml:"tokens" filled:""`
	// MetricsAuthToken is the bearer token of /metrics, or several of which each is accepted;
	// unset leaves it open.
	MetricsAuthToken Secrets `yaml:"metrics_auth_token"`
}

// Delivery has the settings that all handlers share.
type Delivery struct {
	// SigningSecret signs outgoing deliveries; several give several signatures. Unset sends
	// none.
	SigningSecret Secrets `yaml:"signing_secret"`
	// Timeout bounds one attempt from connect to the end of the reply, 1ms to 1h, default 30s.
	Timeout Duration `yaml:"timeout" range:"1ms 1h"`
	// DefaultRetry is the retry policy of handlers without a policy of their own.
	DefaultRetry Retry `yaml:"default_retry"`
	// Record says how much of the sent request an attempt of a handler, step or alert keeps: none (default),
	// headers or all. See [core.Recording].
	Record string `yaml:"record" oneof:"none headers all"`
}

// Retry says how often and how far apart something is tried.
type Retry struct {
	// Max is the number of attempts, the first included, 1 to 1000, default 5.
	Max int `yaml:"max" range:"1 1000"`
	// Backoff is exponential (default: the interval doubles with each attempt) or fixed.
	Backoff string `yaml:"backoff" oneof:"exponential fixed"`
	// Interval is the wait after the first attempt, 1ms to 1d, default 30s.
	Interval Duration `yaml:"interval" range:"1ms 1d"`
}

// Worker bounds the delivery of jobs. Each process has these bounds for itself.
type Worker struct {
	// StaleThresholdSecs is after how many seconds a running job counts as stuck, 1 to 86400,
	// default 300.
	StaleThresholdSecs int `yaml:"stale_threshold_secs" range:"1 86400"`
	// RetentionHours is how many hours finished records are kept, 1 to 87600, default 72.
	RetentionHours int `yaml:"retention_hours" range:"1 87600"`
	// AuditRetentionDays is how many days the entries of the audit are kept, 1 to 3650, default
	// 90.
	AuditRetentionDays int `yaml:"audit_retention_days" range:"1 3650"`
	// DrainTimeoutSecs is how many seconds a shutdown waits for deliveries in flight, 0 to
	// 3600, default 30.
	DrainTimeoutSecs int `yaml:"drain_timeout_secs" range:"0 3600"`
	// MaxConcurrency is how many deliveries run at once, 1 to 1000, default 10.
	MaxConcurrency int `yaml:"max_concurrency" range:"1 1000"`
	// BatchSize is how many jobs are taken at once, 1 to 1000, default 10.
	BatchSize int `yaml:"batch_size" range:"1 1000"`
}

// leaseMargin is how much longer than its timeout a delivery is leased at least. It covers the
// time before the first byte and after the last.
const leaseMargin = 15 * time.Second

// Lease returns the lease of a job for a delivery with this timeout: StaleThresholdSecs, or
// longer if the timeout requires it, so that the lease outlasts a slow answer.
func (w Worker) Lease(timeout time.Duration) time.Duration {
	return max(time.Duration(w.StaleThresholdSecs)*time.Second, timeout+leaseMargin)
}

// SortedSources returns the sources in the order of their names.
func (c *Config) SortedSources() []Source { return slices.Collect(sorted(c.Sources)) }

// SortedHandlers returns the handlers in the order of their names.
func (c *Config) SortedHandlers() []Handler { return slices.Collect(sorted(c.Handlers)) }

// SortedQueues returns the queues in the order of their names.
func (c *Config) SortedQueues() []Queue { return slices.Collect(sorted(c.Queues)) }

// SortedWorkflows returns the workflows in the order of their names.
func (c *Config) SortedWorkflows() []Workflow { return slices.Collect(sorted(c.Workflows)) }

// sorted yields the entries of a map in the order of their names. Problems, lanes and metrics
// then come in the same order in every process.
func sorted[T any](entries map[string]T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, name := range names(entries) {
			if !yield(entries[name]) {
				return
			}
		}
	}
}

// edited yields a pointer to a copy of each entry of a map, in the order of their names, and
// stores the copy after the iteration step.
func edited[T any](entries map[string]T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, name := range names(entries) {
			entry := entries[name]
			more := yield(&entry)
			entries[name] = entry
			if !more {
				return
			}
		}
	}
}

// names returns the names of a map's entries in order.
func names[T any](entries map[string]T) []string {
	return slices.Sorted(maps.Keys(entries))
}
