package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// With --url, the commands that look and repair work on a running server through its
// management API. There is no environment variable for the address: with a forgotten variable,
// "queues drain" would empty a queue of another server than the user expects.

// remoteFlags registers the flags for commands on a server.
func (a *app) remoteFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.urlFlag, "url", "", "`address` of a running gateway to work on, in place of the configured database")
	flags.StringVar(&a.tokenFlag, "token", "", "a `token` of its api.auth_token or api.tokens; other users see it in the process list, unlike GATEWAY_TOKEN")
	flags.StringVar(&a.tokenFile, "token-file", "", "`file` that holds the token, - for standard input")
}

// remote reports whether the command asks a server.
func (a *app) remote() bool { return a.urlFlag != "" }

// Annotations of a command: the flags of a server that it takes, and the meaning of -c.
const (
	takesURL   = "takes --url"
	takesToken = "takes --token" // also without --url
	ownConfig  = "-c is not the configuration that serves, so GATEWAY_CONFIG does not replace it"
)

// remotely lets a command take --url, and with it a token.
func remotely(c *cobra.Command) *cobra.Command { return annotated(c, takesURL) }

// annotated marks a command with keys, and returns the command. Cobra has no flags that only
// some commands below a parent take, so the flags are global and each command says which of
// them it takes.
func annotated(c *cobra.Command, keys ...string) *cobra.Command {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	for _, key := range keys {
		c.Annotations[key] = "yes"
	}
	return c
}

// takes reports whether a command takes a global flag.
func takes(c *cobra.Command, flag string) bool {
	_, url := c.Annotations[takesURL]
	_, token := c.Annotations[takesToken]
	switch flag {
	case "url":
		return url
	case "token", "token-file":
		return url || token
	}
	return true
}

// checkRemote refuses the flags that a command does not take.
func (a *app) checkRemote(c *cobra.Command, _ []string) error {
	if c.HasSubCommands() {
		return nil // it prints its help
	}
	for _, name := range []string{"url", "token", "token-file"} {
		f := c.Flags().Lookup(name)
		switch {
		case !f.Changed:
		case !takes(c, name):
			return usagef("%q works on this machine and takes no --%s", c.CommandPath(), name)
		case name != "url" && f.Value.String() == "":
			return usagef("--%s is empty", name)
		case name != "url" && !c.Flags().Changed("url") && c.Annotations[takesToken] == "":
			return usagef("--%s is for the gateway that --url names", name)
		}
	}
	// Neither wins silently: a script that gives both has a mistake.
	if a.tokenFlag != "" && a.tokenFile != "" {
		return usagef("give --token or --token-file, not both")
	}
	if !c.Flags().Changed("url") {
		return nil
	}
	_, err := parseServer("--url", a.urlFlag)
	return err
}

// parseServer reads the address of a server, which the user gave with a flag.
func parseServer(flag, given string) (*url.URL, error) {
	u, err := remote.ParseAddress(given)
	if err != nil {
		return nil, usagef("%s %v", flag, err)
	}
	return u, nil
}

// maxToken is the longest token, in bytes.
const maxToken = 8 << 10

// token returns the bearer token for a server: from --token, from --token-file, or from the
// environment. It returns "" if there is none.
func (a *app) token(ctx context.Context) (string, error) {
	switch {
	case a.tokenFlag != "":
		return checkToken("--token", a.tokenFlag)
	case a.tokenFile != "":
		return a.readToken(ctx)
	}
	return checkToken("GATEWAY_TOKEN", a.env("GATEWAY_TOKEN"))
}

// readToken reads the file of --token-file, or standard input for "-". White space around the
// token is removed, since editors end a file with a line break.
func (a *app) readToken(ctx context.Context) (string, error) {
	from, in := a.tokenFile, a.stdin
	if from == "-" {
		from = "standard input"
	} else {
		f, err := os.Open(a.tokenFile)
		if err != nil {
			return "", core.Refuse(core.Invalid, "--token-file %s: %v", from, pathless(err))
		}
		defer f.Close()
		in = io.Reader(f)
	}
	text, err := readAll(ctx, in, maxToken)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", core.Refuse(core.Invalid, "--token-file %s: %v", from, pathless(err))
	case len(text) > maxToken:
		return "", core.Refuse(core.Invalid, "--token-file %s: more than %d bytes are no token", from, maxToken)
	case strings.TrimSpace(string(text)) == "":
		return "", core.Refuse(core.Invalid, "--token-file %s: it is empty", from)
	}
	return checkToken("--token-file "+from, strings.TrimSpace(string(text)))
}

// checkToken refuses a token that does not fit into a header.
func checkToken(from, token string) (string, error) {
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "", core.Refuse(core.Invalid, "%s: a token is printable ASCII without blanks", from)
		}
	}
	return token, nil
}

// warnUnencrypted warns if a token would be sent unencrypted over a network.
func (a *app) warnUnencrypted(to *url.URL, token string) {
	if token != "" && to.Scheme == "http" && !remote.Loopback(to.Hostname()) {
		a.Notef("warning: the token goes to %s unencrypted; use https", to.Redacted())
	}
}

// tokenAdvice is the advice in errors about a request without a token.
const tokenAdvice = "put one of its api.auth_token or api.tokens into GATEWAY_TOKEN, or a file for --token-file"

// roleAdvice is the advice in errors about a token whose role is too low.
const roleAdvice = "put a token with the needed role into GATEWAY_TOKEN, or a file for --token-file"

// client returns a client for the server at --url. It sends nothing yet.
func (a *app) client(ctx context.Context) (*remote.Client, error) {
	base, err := parseServer("--url", a.urlFlag)
	if err != nil {
		return nil, err
	}
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	a.warnUnencrypted(base, token)
	return remote.New(remote.Options{
		Base:    base,
		Token:   token,
		Version: readBuild().Version,
		Advice:  remote.Advice{Address: "--url", Token: tokenAdvice, Role: roleAdvice},
	}), nil
}

// remoteOperator returns an operator for the server at --url. It sends nothing yet.
func (a *app) remoteOperator(ctx context.Context) (*operator, error) {
	c, err := a.client(ctx)
	if err != nil {
		return nil, err
	}
	return &operator{
		events:   c.Events(),
		jobs:     c.Jobs(),
		queues:   c.Queues(),
		runs:     c.Runs(),
		tail:     c.Tail(),
		breakers: c.Breakers(),
		holds:    c.Holds(),
		lines:    c.Lines(),
		audit:    c.Audit(),

		schedules:  c.Schedules(),
		operations: c.Operations(),

		stats:  c.Stats,
		series: c.Series,
		handlers: func(ctx context.Context) ([]string, error) {
			stats, err := c.Glance(ctx)
			return wire.List(stats.Handlers, func(h wire.HandlerStats) string { return h.Name }), err
		},
		close: c.Close,
	}, nil
}
