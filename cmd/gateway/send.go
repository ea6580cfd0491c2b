package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/spf13/cobra"
)

// A sendRequest is the flags and arguments of send.
type sendRequest struct {
	source, eventType string
	literal, file     string // the payload: at most one of them
	isLiteral, raw    bool
	dryRun            bool
	sendDelay
}

const sendLong = `Post a test event to a running gateway, as a sender of the source would: with the
bearer token for an event source, signed in the provider's way for a webhook
source, in an envelope for an sns source that has skip_verify. Token and secret
come from the configuration; --token, --token-file or GATEWAY_TOKEN replace the token.
Where there is no configuration, --url sends to a source of type event.

The type goes where the provider puts it (github, gitlab, shopify), into the
subject (sns), or else into the header ce-type. A type in the payload goes before
the subject, and before ce-type if the payload is signed.

The payload is an argument, a file, or standard input with -f -. Without one, it
is {}. For twilio and slack, a payload that is not JSON is sent as a form, with --raw. For
linear, the payload's webhookTimestamp is set to the time of sending. With --dry-run
nothing is sent: the handlers, queues and workflows that would get it are listed.

With --delay or --deliver-at the jobs of the event are due later, at most a year ahead.
Only an event source takes them.`

// newSend makes "gateway send": one event goes to a running gateway in the form that a sender
// of its source would use. It posts to /events/{source}/{event_type}, /webhooks/{source} or
// /sns/{source}; with --dry-run it sends nothing and runs the intake here. It exits with 1 if
// the gateway refuses the event or does not answer.
//
// It goes through the front door, with a real token or signature, and not into the database: so
// it tests the whole way, and finds a wrong secret.
func newSend(a *app) *cobra.Command {
	var r sendRequest
	c := annotated(&cobra.Command{
		Use:   "send -s source -t type [payload]",
		Short: "Send a test event",
		Long:  sendLong,
		Example: `  gateway send -s app -t order.created '{"id": 1}'
  gateway send -s github -t push -f push.json
  gateway send -s calls -t sms --raw 'From=%2B15005550006&Body=hi'
  gateway send -s app -t reminder --delay 30m
  gateway send -s app -t order.created --dry-run`,
		GroupID: groupServe,
		Args:    arguments(0, 1, "the payload"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				r.literal, r.isLiteral = args[0], true
			}
			return a.send(c, r)
		},
	}, takesURL, takesToken)
	flags := c.Flags()
	flags.StringVarP(&r.source, "source", "s", "", "`name` of a configured source (required)")
	flags.StringVarP(&r.eventType, "event-type", "t", "", "event `type` (required)")
	flags.StringVarP(&r.file, "file", "f", "", "read the payload from this `file`, - for standard input")
	flags.BoolVar(&r.raw, "raw", false, "send a payload that is not JSON, too")
	flags.BoolVar(&r.dryRun, "dry-run", false, "list the handlers, queues and workflows that would get it, send nothing")
	flags.StringVar(&r.delay, "delay", "", "the jobs of the event are due after this `duration`, such as 30m")
	flags.StringVar(&r.deliverAt, "deliver-at", "", "the jobs of the event are due at this `time`, such as 2006-01-02T15:04:05Z")
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "event-type", a.recentTypes)
	return c
}

// send makes the request for an event, and sends it or only foresees its jobs. Flags are
// checked before the configuration is read, and the configuration before standard input, which
// can be read only once.
func (a *app) send(c *cobra.Command, r sendRequest) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.sendDelay.check(a.clock()); err != nil {
		return err
	}
	// Both would read the same stream, and the second would find it empty.
	if r.file == "-" && a.tokenFile == "-" {
		return usagef("standard input cannot be both the payload and the token")
	}
	if r.dryRun && a.remote() {
		return usagef("--dry-run asks the configuration here, and takes no --url")
	}
	cfg, err := a.sendConfig(c.Context(), r)
	if err != nil {
		return err
	}
	source, err := sendable(cfg, r)
	if err == nil {
		err = r.permitted(source)
	}
	if err != nil {
		return err
	}
	payload, err := a.payload(c.Context(), r, cfg.Server.MaxBodySize)
	if err != nil {
		return err
	}
	l, err := a.letter(source, r.eventType, payload)
	if err != nil {
		return err
	}
	r.write(l.header)
	a.warnOfType(c.Context(), cfg, source, r.eventType, l)
	if r.dryRun {
		return a.dryRun(c.Context(), cfg, source, r, l)
	}
	return a.post(c, cfg, source, r, l)
}

// sendConfig returns the configuration. If there is none and --url names a gateway, it makes
// one with the source as type event: no other type works without a configuration.
func (a *app) sendConfig(ctx context.Context, r sendRequest) (*config.Config, error) {
	if !a.remote() || !a.unconfigured() {
		return a.loadConfig(ctx)
	}
	cfg := config.Default()
	// All other fields are defaults, and send uses none of them with --url.
	cfg.Server.MaxBodySize = maxBlind
	cfg.Sources = map[string]config.Source{r.source: {Name: r.source, Type: "event"}}
	return cfg, nil
}

// maxBlind bounds the bytes of a payload for a gateway whose limit is unknown. The gateway
// itself refuses a payload that is too large for it.
const maxBlind = 100 << 20

// unconfigured reports whether there is no configuration and the user named none.
func (a *app) unconfigured() bool {
	_, err := os.Stat(a.configPath())
	return errors.Is(err, fs.ErrNotExist) && a.configPath() == baseFile && a.configEnv() == ""
}

// check refuses a request that no source accepts.
func (r sendRequest) check() error {
	switch {
	case r.source == "":
		return usagef("the source is missing; name one with -s")
	case r.eventType == "":
		return usagef("the event type is missing; name one with -t")
	case !intake.ValidType(r.eventType):
		return usagef(`the event type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without ".."`)
	case r.isLiteral && r.file != "":
		return usagef("give the payload as an argument or with -f, not both")
	}
	return nil
}

// sendable returns a source that this machine can send to.
func sendable(cfg *config.Config, r sendRequest) (config.Source, error) {
	source, ok := cfg.Sources[r.source]
	switch {
	case !ok:
		return source, config.Unknown("source", r.source, sourceNames(cfg))
	case source.Type == "cron":
		return source, core.Refuse(core.Unsupported, "source %q is of type cron: its events come from its schedule, and nobody can send any", source.Name)
	// A dry run needs no signature, so it works for every source but cron.
	case source.Type == "sns" && !source.SkipVerify && !r.dryRun:
		return source, core.Refuse(core.Unsupported, "source %q is of type sns, and only Amazon SNS can sign for it: publish to the topic, or set skip_verify: true on the source where you test", source.Name)
	}
	return source, nil
}

// sourceNames returns the names of the configured sources, sorted.
func sourceNames(cfg *config.Config) (names []string) {
	for _, s := range cfg.SortedSources() {
		names = append(names, s.Name)
	}
	return names
}

// payload reads the payload, of at most limit bytes.
func (a *app) payload(ctx context.Context, r sendRequest, limit int) ([]byte, error) {
	payload, err := a.readPayload(ctx, r, limit)
	switch {
	case err != nil:
		return nil, err
	case len(payload) > limit:
		return nil, core.Refuse(core.TooLarge, "the payload is larger than server.max_body_size, %d bytes", limit)
	case r.raw:
		return payload, nil
	}
	return payload, checkJSON(payload)
}

// readPayload reads one byte more than limit at most, so that the caller sees that a payload is
// too large without reading all of it.
func (a *app) readPayload(ctx context.Context, r sendRequest, limit int) ([]byte, error) {
	switch {
	case r.isLiteral:
		return []byte(r.literal), nil
	case r.file == "":
		return []byte("{}"), nil
	case r.file == "-":
		return readAll(ctx, a.stdin, limit)
	}
	f, err := os.Open(r.file)
	if err != nil {
		return nil, fmt.Errorf("payload %s: %w", r.file, pathless(err))
	}
	defer f.Close()
	payload, err := readAll(ctx, io.Reader(f), limit)
	if err != nil {
		return nil, fmt.Errorf("payload %s: %w", r.file, pathless(err))
	}
	return payload, nil
}

// checkJSON refuses a payload that is not one JSON document, and returns the position of the
// mistake.
func checkJSON(payload []byte) error {
	var document json.RawMessage
	// The added blank moves the position of an early end behind the last byte.
	err := json.Unmarshal(append(slices.Clip(payload), ' '), &document)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("read payload: %w", err)
	}
	// The offset points to the byte after the mistake.
	before := payload[:min(int(syntax.Offset)-1, len(payload))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return core.Refuse(core.Invalid, "the payload is not JSON at line %d, column %d: %v; --raw sends it as it is", line, column, err)
}
