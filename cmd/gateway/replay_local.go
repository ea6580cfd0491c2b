package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/spf13/cobra"
)

const replayLocalLong = `Post each event of a file that "gateway export events" wrote, - for standard input, to
/events/{source}/{event_type} of a running gateway, one after the other: payload,
content type and ce-* headers as they were received. The gateway takes them as new
events, an empty payload as {}; the sources must exist there, with the type event.

The gateway is the one of the configuration, or of --target. Its token comes from --token,
--token-file or GATEWAY_TOKEN, else from the configuration, whose token is sent only to
this machine and to server.public_url. Asks before, unless -y is given, which standard
input needs.

The number of a line is printed if its event is refused, or if it holds no event; the
other lines are sent all the same, and the command ends with 1. It stops early where
that cannot help: if no gateway answers, or if the token is refused. A busy gateway is
given time. Behind a pipe "set -o pipefail" lets the shell see a failure of the command
before the pipe.

Each replay sends all it is given, also for the second time; lines with the same id and
content are one event, and sent once. To go on with a replay that was cut short, give the
name that it printed at its end, or a name of your own from the first time on, with --run:
an event that was sent under that name before counts as a duplicate, and the rest is sent.
This holds for as long as the gateway keeps the events. A CloudEvent has an identity of
its own: a gateway that has it already never takes it again ("gateway events replay"
delivers it again).`

// newReplayLocal makes "gateway replay-local": events of an export go to a gateway as new
// events. It posts each to /events/{source}/{event_type}, one after the other. It exits with 1
// if an event failed, with 2 if a question is needed and cannot be asked.
//
// "gateway events replay" gives events of one database new jobs. This command carries events to
// another gateway, such as that of a developer. So it uses the door for senders, and needs no
// access to the other database.
func newReplayLocal(a *app) *cobra.Command {
	var r localReplay
	c := &cobra.Command{
		Use:   "replay-local <file or ->",
		Short: "Send exported events to a gateway",
		Long:  replayLocalLong,
		Example: `  gateway replay-local events.jsonl
  gateway replay-local events.jsonl --source shop -t 'order.*' --since 1d --target http://127.0.0.1:9000
  gateway replay-local events.jsonl --run monday -y; gateway replay-local events.jsonl --run monday -y
  set -o pipefail; gateway export events --url https://gateway.example.com | gateway replay-local - -y`,
		GroupID: groupInspect,
		Args:    arguments(1, 1, "the file"),
		RunE: func(c *cobra.Command, args []string) error {
			r.file = args[0]
			if err := a.prepareLocal(c.Context(), &r); err != nil {
				return err
			}
			return a.replayLocal(c.Context(), r)
		},
	}
	r.register(a, c, "exactly this `type`, or, with a * at its end, of all that begin so")
	flags := c.Flags()
	flags.StringVar(&r.status, "status", "", "only events with a job that had this `status`: available, scheduled, waiting, running, completed, retryable, dead or canceled")
	flags.StringVar(&r.target, "target", "", "`address` of the gateway (default http://127.0.0.1 and the configured port)")
	flags.StringVar(&r.name, "run", "", "leave out events that were sent under this `name` before (default a new one)")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	a.complete(c, "status", statusNames)
	return annotated(c, takesToken)
}

// A localReplay is the user's choice of events to send, and their target.
type localReplay struct {
	selection
	file, status, target string
	name                 string // names the replay: an event already sent under it is a duplicate; "" for no name
	yes                  bool

	pick     picker
	to       *url.URL
	bearer   string // token for the target; "" for none
	withheld bool   // the configured token is not sent, since it is not for this target
	maxLine  int    // in bytes
}

// leastLine is the line size in bytes that is accepted for any size of payloads.
const leastLine = 4 << 20

// lineFor returns the longest line for a payload of so many bytes. JSON may need six bytes for
// each byte, and the line also holds the event's jobs and runs.
func lineFor(payload int) int { return max(leastLine, 6*payload+1<<20) }

// prepareLocal checks the flags and fills in their defaults.
func (a *app) prepareLocal(ctx context.Context, r *localReplay) (err error) {
	if r.pick.EventFilter, err = r.parse(a.clock()); err != nil {
		return err
	}
	if r.status != "" {
		if r.pick.status, err = core.ParseStatus(r.status); err != nil {
			return usageError(err.Error())
		}
	}
	if r.name == "" {
		r.name = string(core.NewIDs(a.clock).Next())
	}
	if !runName(r.name) {
		return usagef("--run must be 1 to 64 characters of A-Z a-z 0-9 . _ -; not %q", terminal.Clip(r.name, 80))
	}
	// Both would read the same stream.
	if r.file == "-" && a.tokenFile == "-" {
		return usagef("standard input cannot be both the events and the token")
	}
	if err := r.askable(a.attended); err != nil {
		return err
	}
	cfg, err := a.configBeside(ctx, r.target)
	if err != nil {
		return err
	}
	return a.aim(ctx, cfg, r)
}

// runName reports whether s is a valid name for a replay.
func runName(s string) bool {
	return len(s) <= 64 && s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("._-", r)
	})
}

// askable returns an error without -y if no question is possible: the user cannot be asked, or
// the input can be read only once and so cannot be counted before.
func (r *localReplay) askable(attended bool) error {
	switch info, err := os.Stat(r.file); {
	case r.yes:
		return nil
	case r.file == "-":
		return usagef("events that come from standard input are sent without a question: say -y")
	case err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return usagef("%s is not a file that can be read twice, so events are sent without a question: say -y", r.file)
	case !attended:
		return usagef("nobody can be asked here: say -y to send")
	}
	return nil
}

// configBeside returns the configuration. It returns a default one if there is no file and the
// user gave a target.
func (a *app) configBeside(ctx context.Context, target string) (*config.Config, error) {
	if target != "" && a.configPath() == baseFile {
		if _, err := os.Stat(baseFile); errors.Is(err, fs.ErrNotExist) {
			return config.Default(), nil
		}
	}
	return a.loadConfig(ctx)
}

// aim sets the target and its token.
func (a *app) aim(ctx context.Context, cfg *config.Config, r *localReplay) (err error) {
	if r.to, err = a.address(cfg); r.target != "" {
		r.to, err = parseServer("--target", r.target)
	}
	if err != nil {
		return err
	}
	given, err := a.token(ctx)
	if err != nil {
		return err
	}
	r.bearer = given
	if own := cfg.API.Granting(core.RoleSend).First(); given == "" && own != "" {
		if r.withheld = !r.own(cfg); !r.withheld {
			r.bearer = own
		}
	}
	r.maxLine = lineFor(cfg.Server.MaxBodySize)
	a.warnUnencrypted(r.to, r.bearer)
	return nil
}

// own reports whether the token of the configuration is for the target: the target is this
// machine, or the public URL in the configuration.
func (r *localReplay) own(cfg *config.Config) bool {
	if r.target == "" || remote.Loopback(r.to.Hostname()) {
		return true
	}
	outside, err := url.Parse(cfg.Server.PublicURL)
	return err == nil && outside.Scheme == r.to.Scheme && outside.Host != "" && strings.EqualFold(outside.Host, r.to.Host)
}

// replayLocal asks if it must, and sends the events of the file.
func (a *app) replayLocal(ctx context.Context, r localReplay) error {
	p := &posting{app: a, localReplay: r, calls: remote.HTTPClient(answerTimeout)}
	defer p.calls.CloseIdleConnections()
	if !r.yes {
		if err := p.ask(ctx); err != nil {
			return err
		}
	}
	return p.run(ctx)
}
