package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/reference"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
)

// The names of systems are the columns of the report, and the words of -systems.
const (
	gatewayName   = "gateway"
	referenceName = "reference"
	// The reference with a transaction a request, on pools of two sizes, 10 being the
	// gateway's default.
	single10Name = "reference, no groups, pool 10"
	single32Name = "reference, no groups, pool 32"
	pgbenchName  = "pgbench"
	analysedName = "gateway, analysed tables"
	onPostgres   = "gateway on postgres"
	// referenceCommand is the argument that makes this program the reference.
	referenceCommand = "reference"
	gatewayPackage   = "github.com/eventgateway/gateway/cmd/gateway"
	// batchPath is where the gateway takes batches of CloudEvents, for the same source.
	batchPath = "/events/bench"

	// postPath is where both systems take events: source bench.
	postPath = batchPath + "/" + postType
	postType = "order.created"
	// queueName is the queue that gets the events if no handler does.
	queueName = "bench"
)

// signingKey signs every delivery of both systems.
var signingKey = []byte("a signing key of 32 bytes length")

// setup has the settings for starting a system. Systems ignore the settings that they cannot
// follow: the reference has no steps and purges nothing.
type setup struct {
	dir      string // the system's own
	database *server.Database
	addr     string // to listen on
	sink     string // URL of every delivery
	slots    int    // deliveries at a time; 0 is the default of 10, intakeOnly and queued none
	steps    int    // of a workflow in place of the handler, at most 10; 0 for none
	keep     int    // hours until finished records are purged, or 0 for the default
	key      string // path to the key of the handler's lines; "" for no lines
	lanes    int    // handlers, each of a type of its own; 0 for one of all types
	record   string // the handler's setting "record", with a transform; "" for the default without one
}

// intakeOnly starts a system that accepts but does not deliver. The gateway has no such
// mode: it gets one slot, and the sink never answers that.
const intakeOnly = -1

// queued starts the gateway with a queue in place of the handler.
const queued = -2

// stocked starts the gateway with the consumers of a filled database, beside the handler.
// None of their jobs is due.
const stocked = -3

// defaultSlots is the default of worker.max_concurrency. The reference gets as many.
const defaultSlots = 10

// system is one of the compared systems. start writes the configuration into the folder of the
// setup and returns the command. It starts nothing by itself. pgbench and the tables of queues
// have no start: other code runs them.
type system struct {
	name  string
	start func(setup) (proc.Spec, error)
}

// gateway is the real binary with the configuration of a user: it has only the settings
// that the run needs.
func gateway(binary string) system {
	return system{gatewayName, func(s setup) (proc.Spec, error) {
		file := filepath.Join(s.dir, "gateway.yaml")
		text, err := gatewayConfig(s)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		return proc.Spec{Path: binary, Args: []string{"start", "-c", file}, Env: []string{"RUST_LOG=warn"}, Dir: s.dir, Addr: s.addr}, err
	}}
}

// gatewayConfig returns the gateway.yaml of a run. max_inbound is above the connections of any
// run, and the timeout is as long as the posting of a run may take. So neither causes a refusal
// or a repeat that the reference would not have.
func gatewayConfig(s setup) (string, error) {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return "", err
	}
	worker := ""
	switch {
	case s.slots == intakeOnly:
		// A single slot, since each slot would claim a job and deliver it into the hanging
		// sink.
		worker = "  max_concurrency: 1\n"
	case s.slots > 0:
		// The reference claims as many as it has free slots, too.
		worker = fmt.Sprintf("  max_concurrency: %d\n  batch_size: %d\n", s.slots, s.slots)
	}
	if s.keep > 0 {
		worker += fmt.Sprintf("  retention_hours: %d\n", s.keep)
	}
	return fmt.Sprintf(`database:
  driver: %s
%sserver:
  host: %s
  port: %s
  max_inbound: 1000
  allow_private_urls: true
delivery:
  signing_secret: whsec_%s
  timeout: 120s
worker:
  drain_timeout_secs: 5
%ssources:
  bench:
    type: event
%s`, s.database.Driver, address(s.database), host, port, base64.StdEncoding.EncodeToString(signingKey), worker, s.consumer()), nil
}

// consumer returns the part of the configuration with the consumer of the events. Exactly one
// consumer wants each event, as in the reference, which makes one job for each.
func (s setup) consumer() string {
	if s.slots == queued {
		return fmt.Sprintf("queues:\n  %s:\n    source: bench\n", queueName)
	}
	if s.steps > 0 {
		text := "workflows:\n  bench:\n    source: bench\n    steps:\n"
		for step := range s.steps {
			text += fmt.Sprintf("      - {name: step-%d, url: '%s%d'}\n", step, s.sink, step)
		}
		return text
	}
	if s.lanes > 0 {
		var text strings.Builder
		text.WriteString("handlers:\n")
		for i := range s.lanes {
			fmt.Fprintf(&text, "  sink-%d: {source: bench, events: [%s], url: '%s'}\n", i, load.TypeOf(postType, i), s.sink)
		}
		return text.String()
	}
	handler := fmt.Sprintf("handlers:\n  sink:\n    source: bench\n    url: %s\n", s.sink)
	if s.key != "" {
		// The second handler is the held one of [server.Database.PileUndue].
		return "  other: {type: event}\n" + handler + fmt.Sprintf("    lines: {key: %s}\n  held: {source: other, url: '%s'}\n", s.key, s.sink)
	}
	if s.record != "" {
		// The sink knows an event by the beginning of its body.
		return handler + fmt.Sprintf("    record: %s\n    transform: '%s'\n", s.record, `{"seq":{{ $.seq }},"t":{{ $.t }},"pad":{{ $.pad }}}`)
	}
	if s.slots == stocked {
		return s.stock() + handler + s.stockedHandlers()
	}
	return handler
}

// stock returns the sources and queues of [server.Database.Fill]; stockedHandlers returns
// its handlers.
func (s setup) stock() string {
	return "  app: {type: event}\n  shop: {type: event}\n  seldom: {type: event}\n" +
		"queues:\n  q: {source: shop}\n" +
		fmt.Sprintf("workflows:\n  w:\n    source: shop\n    steps:\n      - {name: one, url: '%s'}\n", s.sink)
}

// stockedHandlers returns the handlers whose finished jobs a filled database has. Without them
// the unfinished ones would be strays.
func (s setup) stockedHandlers() (text string) {
	for i := range server.FilledLanes {
		text += fmt.Sprintf("  h%d: {source: app, url: '%s'}\n", i, s.sink)
	}
	return text
}

// address returns the part of the configuration with the address of the database.
func address(d *server.Database) string {
	if d.Driver == server.Hosted {
		return fmt.Sprintf("  hosted_sql_endpoint: %s\n  api_token: %s\n", strconv.Quote(d.URL), strconv.Quote(d.Token))
	}
	return fmt.Sprintf("  url: %s\n", strconv.Quote(d.URL))
}

// committing is how a reference commits: groups with this number of concurrent writers, or a
// transaction a request on a pool of this size. One of the two numbers is zero.
type committing struct{ committers, pool int }

// bestCommitting returns the fastest of the reference's ways to commit in groups. Where a
// sync takes long, several writers overlap; otherwise one writer makes the largest groups.
func bestCommitting(driver, medium string) committing {
	if driver == server.Postgres && medium != server.CPU {
		return committing{committers: 4}
	}
	return committing{committers: 1}
}

// referencePipeline is this program, started again as the reference.
func referencePipeline(self, name string, c committing) system {
	return system{name, func(s setup) (proc.Spec, error) {
		// The two systems spell "default" and "none" differently.
		slots := s.slots
		switch slots {
		case 0:
			slots = defaultSlots
		case intakeOnly:
			slots = 0
		}
		args := []string{
			referenceCommand, "-listen", s.addr, "-driver", s.database.Driver, "-url", s.database.URL, "-token", s.database.Token,
			"-sink", s.sink, "-slots", strconv.Itoa(slots), "-key", base64.StdEncoding.EncodeToString(signingKey),
			"-committers", strconv.Itoa(c.committers), "-pool", strconv.Itoa(c.pool),
		}
		return proc.Spec{Path: self, Args: args, Dir: s.dir, Addr: s.addr}, nil
	}}
}

// runReference serves until ctx ends. It is the other end of referencePipeline, in a process of
// its own, so that its CPU time is counted as that of the gateway is.
func runReference(ctx context.Context, args []string, errs io.Writer) int {
	flags := flag.NewFlagSet("bench "+referenceCommand, flag.ContinueOnError)
	flags.SetOutput(errs)
	var cfg reference.Config
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8889", "address to listen on")
	flags.StringVar(&cfg.Driver, "driver", server.SQLite, "kind of database")
	flags.StringVar(&cfg.URL, "url", "reference.db", "address of the database")
	flags.StringVar(&cfg.Token, "token", "", "token of hosted_sql")
	flags.StringVar(&cfg.Sink, "sink", "http://127.0.0.1:8890/", "URL of every delivery")
	flags.IntVar(&cfg.Slots, "slots", 32, "deliveries at a time, 0 for intake alone")
	flags.IntVar(&cfg.Committers, "committers", 1, "groups written at the same time, 0 for a transaction a request")
	flags.IntVar(&cfg.Pool, "pool", 10, "connections for a transaction a request")
	key := flags.String("key", "", "key of the signatures, base64")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	err := serveReference(ctx, cfg, *key)
	if err != nil {
		fmt.Fprintln(errs, "reference:", err)
		return 1
	}
	return 0
}

// serveReference runs the pipeline until ctx is done, or until its work fails. It then has 5 s
// to end.
func serveReference(ctx context.Context, cfg reference.Config, key string) (err error) {
	if cfg.Key, err = base64.StdEncoding.DecodeString(key); err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	p, err := reference.Start(cfg)
	if err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return p.Close(ending)
}

// buildGateway compiles the gateway as it is released. An existing binary could be of an
// earlier version.
func buildGateway(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "otel grpcnotrace nopgxregisterdefaulttypes", "-trimpath", "-ldflags", "-s -w", "-o", binary, gatewayPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return binary, nil
}
