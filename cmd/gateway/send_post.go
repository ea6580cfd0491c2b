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

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/spf13/cobra"
)

// answerTimeout bounds a call of the gateway, which answers at once or is ill.
const answerTimeout = 15 * time.Second

// httpClient makes the one client this package calls a gateway with; zero is no timeout.
// It follows no redirects: a token must not go where it was not meant to.
func httpClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a letter to the gateway and prints what it answered.
func (a *app) post(c *cobra.Command, cfg *config.Config, source config.Source, r sendRequest, l letter) error {
	base, err := a.address(cfg)
	if err != nil {
		return err
	}
	request, err := a.request(c.Context(), cfg, source, base, l)
	if err != nil {
		return err
	}
	a.warnUnencrypted(base, request.Header.Get("Authorization"))
	response, err := httpClient(answerTimeout).Do(request)
	if err != nil {
		return unanswered(c.Context(), base, err)
	}
	defer response.Body.Close()
	answer, err := readAnswer(response)
	if err != nil {
		return fmt.Errorf("the gateway at %s broke off its answer: %w", base, cause(err))
	}
	if answer.StatusCode >= 300 {
		return answer.refused(source)
	}
	return a.printAnswer(c, answer)
}

// address is where the gateway listens: what --url says, or the configuration.
func (a *app) address(cfg *config.Config) (*url.URL, error) {
	if a.remote() {
		return parseServer("--url", a.urlFlag)
	}
	host := cfg.Server.Host
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(cfg.Server.Port))}, nil
}

// request makes the request that a sender of the source would make.
func (a *app) request(ctx context.Context, cfg *config.Config, source config.Source, base *url.URL, l letter) (*http.Request, error) {
	if err := a.prove(ctx, cfg, source, l); err != nil {
		return nil, err
	}
	return l.request(ctx, base)
}

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

// unanswered says why there is no answer, and what to do about it.
func unanswered(ctx context.Context, base *url.URL, err error) error {
	var network *net.OpError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &network) && network.Op == "dial":
		return core.Refuse(core.Unavailable, `no gateway answers at %s (%v); "gateway start" starts one, --url names another`, base.Redacted(), network.Err)
	}
	return fmt.Errorf("no answer from the gateway at %s: %w", base.Redacted(), cause(err))
}

// cause is an error without the address that net/http puts before it.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
