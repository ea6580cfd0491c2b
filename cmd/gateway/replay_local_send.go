package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
)

// A posting is a replay under way.
type posting struct {
	*app
	localReplay
	calls *http.Client

	lines map[bool]int // number of events that are picked (true) and not picked (false); nil if not counted
	sent  posted
}

// posted counts the events so far by result. Failed includes lines without a valid event.
type posted struct {
	Sent       int `json:"sent"`
	Duplicates int `json:"duplicates"`
	Failed     int `json:"failed"`
}

// ask counts the events to send, prints the errors of the file, and asks the user whether to
// go on. If there is nothing to send, it does not ask.
func (p *posting) ask(ctx context.Context) error {
	counted := map[bool]int{}
	err := p.each(ctx, func(e exported, err error) error {
		if err != nil {
			p.complainOf(e, err)
			return nil
		}
		counted[p.pick.picks(e)]++
		return nil
	})
	if p.lines = counted; err != nil || counted[true] == 0 {
		return err
	}
	which := terminal.Count(counted[true], "event")
	if !p.pick.all() {
		which = fmt.Sprintf("%d of %s", counted[true], terminal.Count(counted[true]+counted[false], "event"))
	}
	return p.confirm(ctx, fmt.Sprintf("replay %s to %s", which, p.to))
}

// each calls do for each line that is not blank, with its event or its error. It ends when do
// returns an error.
func (p *posting) each(ctx context.Context, do func(exported, error) error) error {
	in := io.NopCloser(p.stdin)
	if p.file != "-" {
		f, err := os.Open(p.file)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, pathless(err))
		}
		in = f
	}
	defer in.Close()
	for e, err := range exportedEvents(ctx, in, p.maxLine) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && e.line == 0:
			return fmt.Errorf("%s: %w", p.file, pathless(err))
		}
		if err := do(e, err); err != nil {
			return err
		}
	}
	return nil
}

// complainOf prints the error of an event with its line, so that an editor finds it. The replay
// goes on.
func (p *posting) complainOf(e exported, err error) {
	if e.ID == "" {
		p.Complain(fmt.Sprintf("line %d: %v", e.line, err))
		return
	}
	p.Complain(fmt.Sprintf("line %d, event %s: %v", e.line, terminal.Clip(e.ID, 40), err))
}

// run sends the events and prints the counts, also if it ends early.
func (p *posting) run(ctx context.Context) error {
	// The counts are printed even if the replay breaks off: the user must know how much was
	// sent.
	progress := p.Progress()
	err := p.each(ctx, func(e exported, bad error) error {
		err := p.take(ctx, e, bad, progress)
		progress.Show("%s", p.sent.words()+p.of())
		return err
	})
	progress.Clear()
	if err != nil && p.sent == (posted{}) {
		return err
	}
	if err == nil && p.sent == (posted{}) {
		p.Notef("no events")
	}
	if printed := p.printSent(); err == nil {
		err = printed
	}
	// Only a replay that sent something and did not finish has a rest.
	if p.name != "" && p.sent.Sent > 0 && (err != nil || p.sent.Failed > 0) {
		p.Notef("to send only the rest: the same command with --run %s", p.name)
	}
	if err == nil && p.sent.Failed > 0 {
		return errReported
	}
	return err
}

// take sends one event, if it is valid and picked. An error ends the replay.
func (p *posting) take(ctx context.Context, e exported, bad error, progress *terminal.Progress) error {
	if bad != nil {
		p.sent.Failed++
		if p.lines == nil { // otherwise ask has printed it
			progress.Clear()
			p.complainOf(e, bad)
		}
		return nil
	}
	if !p.pick.picks(e) {
		return nil
	}
	duplicate, err := p.post(ctx, e)
	var hopeless hopelessError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &hopeless):
		return err
	case err != nil:
		p.sent.Failed++
		progress.Clear()
		p.complainOf(e, err)
	case duplicate:
		p.sent.Duplicates++
	default:
		p.sent.Sent++
	}
	return nil
}

// A hopelessError would hit every other event too.
type hopelessError struct{ error }

// hopeless returns an error that ends the replay.
func hopeless(format string, args ...any) error {
	return hopelessError{core.Refuse(core.Unavailable, format, args...)}
}

// busyTries is the number of tries for an event while the gateway is busy. busyWait bounds the
// pause that the gateway may ask for.
const (
	busyTries = 5
	busyWait  = 30 * time.Second
)

// post sends an event, again if the gateway is busy. It reports whether the gateway already
// had the event.
func (p *posting) post(ctx context.Context, e exported) (duplicate bool, err error) {
	if err := checkHeaders(e.letterHeaders()); err != nil {
		return false, err
	}
	for try := 1; ; try++ {
		ans, wait, err := p.offer(ctx, e)
		switch code := ans.StatusCode; {
		case err != nil:
			return false, err
		// A gateway that is busy has not taken the event, or cannot say. The idempotency key
		// makes the repetition safe.
		case (code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable) && try < busyTries:
			if err := pause(ctx, wait); err != nil {
				return false, err
			}
			continue
		// Each further event would get the same answer.
		case ans.strange != nil:
			return false, hopelessError{ans.strange}
		case code >= 200 && code < 300:
			return ans.Duplicate, nil
		case code == http.StatusUnauthorized && p.withheld:
			return false, hopeless("the gateway at %s asks for a token, and the token of this configuration is sent only to this machine and to server.public_url; put the token into GATEWAY_TOKEN, or a file for --token-file", p.to)
		case code == http.StatusUnauthorized && p.bearer == "":
			return false, hopeless("the gateway at %s asks for a token; %s", p.to, tokenAdvice)
		case code == http.StatusUnauthorized:
			return false, hopeless("the gateway at %s refused the token; is it in api.auth_token or api.tokens of its configuration?", p.to)
		case ans.lowRole:
			return false, hopeless("the gateway at %s refused this: %s; %s", p.to, terminal.Clip(ans.message, 200), roleAdvice)
		}
		return false, errors.New(strings.TrimSuffix(remote.Status(ans.StatusCode)+": "+terminal.Clip(ans.message, 200), ": "))
	}
}

// A reaction is the answer to an event. The field strange is set if the answer is not from a
// gateway.
type reaction struct {
	answer
	strange error
}

// offer posts an event once. It returns the pause that the answer asks for.
func (p *posting) offer(ctx context.Context, e exported) (ans reaction, wait time.Duration, err error) {
	request, err := p.letter(e).request(ctx, p.to)
	if err != nil {
		return ans, 0, err
	}
	response, err := p.calls.Do(request)
	if err != nil {
		return ans, 0, p.unanswered(err)
	}
	defer response.Body.Close()
	if ans.strange = remote.Recognise(response, p.to, "--target"); ans.strange != nil {
		ans.StatusCode = response.StatusCode
	} else if ans.answer, err = readAnswer(response); err != nil {
		return ans, 0, fmt.Errorf("the answer broke off: %w", remote.Cause(err))
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return ans, min(max(time.Duration(seconds)*time.Second, time.Second), busyWait), nil
}

// letter returns the request that the first sender of the event might have posted.
func (p *posting) letter(e exported) letter {
	l := letter{path: []string{"events", remote.Segment(e.Source), remote.Segment(e.EventType)}, header: e.letterHeaders(), body: e.Payload}
	if key := e.key(p.name); key != "" {
		l.header.Set("Idempotency-Key", key)
	}
	if p.bearer != "" {
		l.header.Set("Authorization", "Bearer "+p.bearer)
	}
	return l
}

// unanswered explains why there is no answer. If nothing listens, no further event can be sent;
// any other fault may hit this event only.
func (p *posting) unanswered(err error) error {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return hopeless(`no gateway answers at %s (%v); %q starts one, --target names another`, p.to, network.Err, p.line("start"))
	}
	return fmt.Errorf("no answer: %w", remote.Cause(err))
}

// of returns the number of events to send in words, if it is known.
func (p *posting) of() string {
	if p.lines == nil {
		return ""
	}
	return fmt.Sprintf(", of %d", p.lines[true])
}

// words returns the counts as a part of a line.
func (s posted) words() string {
	return fmt.Sprintf("sent %d, duplicates %d, failed %d", s.Sent, s.Duplicates, s.Failed)
}

// printSent prints the counts, and with --json the name of the replay, with which it can be
// continued.
func (p *posting) printSent() error {
	if p.json {
		return p.PrintJSON(struct {
			Run string `json:"run"`
			posted
		}{p.name, p.sent})
	}
	p.Printf("%s", p.sent.words())
	return nil
}
