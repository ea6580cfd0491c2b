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
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/reference"
)

const (
	gatewayName   = "gateway"
	referenceName = "reference"
	// referenceCommand is the argument that makes this program the reference.
	referenceCommand = "reference"
	gatewayPackage   = "github.com/eventgateway/gateway/cmd/gateway"
	database         = "bench.db"
	// postPath is where both systems take events: source bench.
	postPath = "/events/bench/order.created"
)

// signingKey signs every delivery of both systems.
var signingKey = []byte("a signing key of 32 bytes length")

// setup is how a system is to be started.
type setup struct {
	dir   string // of the database; the system's own
	addr  string // to listen on
	sink  string // URL of every delivery
	slots int    // deliveries at a time; 0 is the default of 10, intakeOnly none
}

// intakeOnly starts a system that accepts but does not deliver. The gateway
// knows no such thing: it gets one slot, and the sink never answers it.
const intakeOnly = -1

const defaultSlots = 10

// system is one of the two that are compared.
type system struct {
	name  string
	start func(setup) (proc.Spec, error)
}

// gateway is the real binary with the configuration of a user who set nothing
// but what the run needs.
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

func gatewayConfig(s setup) (string, error) {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return "", err
	}
	worker := ""
	switch {
	case s.slots == intakeOnly:
		worker = "  max_concurrency: 1\n"
	case s.slots > 0:
		// The reference claims as many as it has free slots, too.
		worker = fmt.Sprintf("  max_concurrency: %d\n  batch_size: %d\n", s.slots, s.slots)
	}
	return fmt.Sprintf(`database:
  driver: sqlite
  url: %s
server:
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
handlers:
  sink:
    source: bench
    url: %s
`, strconv.Quote(filepath.Join(s.dir, database)), host, port, base64.StdEncoding.EncodeToString(signingKey), worker, s.sink), nil
}

// referencePipeline is this program, started again as the reference.
func referencePipeline(self string) system {
	return system{referenceName, func(s setup) (proc.Spec, error) {
		slots := s.slots
		switch slots {
		case 0:
			slots = defaultSlots
		case intakeOnly:
			slots = 0
		}
		args := []string{
			referenceCommand, "-listen", s.addr, "-db", filepath.Join(s.dir, database), "-sink", s.sink,
			"-slots", strconv.Itoa(slots), "-key", base64.StdEncoding.EncodeToString(signingKey),
		}
		return proc.Spec{Path: self, Args: args, Dir: s.dir, Addr: s.addr}, nil
	}}
}

// runReference serves until ctx ends.
func runReference(ctx context.Context, args []string, errs io.Writer) int {
	flags := flag.NewFlagSet("bench "+referenceCommand, flag.ContinueOnError)
	flags.SetOutput(errs)
	var cfg reference.Config
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8889", "address to listen on")
	flags.StringVar(&cfg.DB, "db", "reference.db", "database file")
	flags.StringVar(&cfg.Sink, "sink", "http://127.0.0.1:8890/", "URL of every delivery")
	flags.IntVar(&cfg.Slots, "slots", 32, "deliveries at a time, 0 for intake alone")
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

// buildGateway compiles the gateway as it is released. Using a binary that lies
// about would measure yesterday's.
func buildGateway(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", binary, gatewayPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return binary, nil
}
