package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/spf13/cobra"
)

// answerTimeout bounds a call of the gateway. A healthy gateway answers at once.
const answerTimeout = 15 * time.Second

// maxPosts is how many times a letter is sent while its outcome is unknown.
const maxPosts = 3

// post sends a letter to the gateway and prints its answer. If the gateway does not know
// whether it stored the event, post sends it again as the same event.
func (a *app) post(c *cobra.Command, cfg *config.Config, source config.Source, r sendRequest, l letter) error {
	base, err := a.address(cfg)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		answer, pause, err := a.postOnce(c.Context(), cfg, source, base, l)
		switch {
		case err != nil:
			return err
		// Only the API knows the header for a repetition. Senders of webhooks repeat by
		// themselves, with the delivery id of their own.
		case answer.unknown() && source.Type == "event" && try < maxPosts:
			a.Notef("the gateway does not know whether it stored event %s; sending it again as the same event", terminal.Visible(string(answer.EventID)))
			l.header.Set(intake.Repeat, string(answer.EventID))
		case answer.StatusCode >= 300:
			return answer.refused(source)
		default:
			return a.printAnswer(c, answer)
		}
		select {
		// The gateway may have answered that it is overloaded. Its Retry-After is obeyed up to
		// 10 s: a user waits.
		case <-time.After(pause):
		case <-c.Context().Done():
			return c.Context().Err()
		}
	}
}

// postOnce sends a letter. It returns the answer and the pause before the next try.
func (a *app) postOnce(ctx context.Context, cfg *config.Config, source config.Source, base *url.URL, l letter) (answer, time.Duration, error) {
	request, err := a.request(ctx, cfg, source, base, l)
	if err != nil {
		return answer{}, 0, err
	}
	a.warnUnencrypted(base, request.Header.Get("Authorization"))
	response, err := remote.HTTPClient(answerTimeout).Do(request)
	if err != nil {
		return answer{}, 0, a.unanswered(ctx, base, err)
	}
	defer response.Body.Close()
	ans, err := readAnswer(response)
	if err != nil {
		return answer{}, 0, fmt.Errorf("the gateway at %s broke off its answer: %w", base, remote.Cause(err))
	}
	// A missing or odd header is 0: the next try follows at once.
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return ans, time.Duration(min(max(seconds, 0), 10)) * time.Second, nil
}

// address returns where the gateway listens: from --url, or from the configuration.
func (a *app) address(cfg *config.Config) (*url.URL, error) {
	if a.remote() {
		return parseServer("--url", a.urlFlag)
	}
	// A server that listens on all addresses is reached at the loopback address. The
	// request does not leave the machine.
	host := cfg.Server.Host
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(cfg.Server.Port))}, nil
}

// request makes the request that a sender of the source would make.
func (a *app) request(ctx context.Context, cfg *config.Config, source config.Source, base *url.URL, l letter) (*http.Request, error) {
	// The proof is made for each try: a signature holds the time, and some schemes accept it
	// for a minute only.
	if err := a.prove(ctx, cfg, source, l); err != nil {
		return nil, err
	}
	return l.request(ctx, base)
}

// request returns the letter as a request to the gateway at base. The body is a new reader each
// time, so a letter can be sent again.
func (l letter) request(ctx context.Context, base *url.URL) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.target(base).String(), bytes.NewReader(l.body))
	if err != nil {
		return nil, err
	}
	request.Header = l.header
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "gateway/"+readBuild().Version)
	return request, nil
}

// unanswered explains why there is no answer, with the remedy.
func (a *app) unanswered(ctx context.Context, base *url.URL, err error) error {
	var network *net.OpError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &network) && network.Op == "dial":
		return core.Refuse(core.Unavailable, `no gateway answers at %s (%v); %q starts one, --url names another`, base.Redacted(), network.Err, a.line("start"))
	}
	return fmt.Errorf("no answer from the gateway at %s: %w", base.Redacted(), remote.Cause(err))
}
