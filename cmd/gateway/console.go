package main

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/cli/browser"
	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newConsole makes "gateway console": it opens the operator console in a browser, signed in. The
// address has a code that counts for a minute, made with the token, and never the token: see
// [wire.CodeOf].
func newConsole(a *app) *cobra.Command {
	var printOnly bool
	c := remotely(&cobra.Command{
		Use:   "console",
		Short: "Open the operator console in a browser",
		Long: `Open the console of the gateway of this configuration, or of the one at --url, in a browser
that is signed in. The gateway must run, with "console: true" in its configuration.

The address is printed as well, for a machine without a browser. It signs in for a minute: its
code is made with the token of the configuration, of --token, --token-file or GATEWAY_TOKEN.`,
		Example: `  gateway console --env local
  gateway console --url https://events.example.com
  gateway console --print`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.console(c.Context(), printOnly) },
	})
	c.Flags().BoolVar(&printOnly, "print", false, "only print the address")
	return c
}

// console prints the address of the console, and opens it.
func (a *app) console(ctx context.Context, printOnly bool) error {
	address, err := a.consoleAddress(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.PrintJSON(map[string]string{"url": address})
	}
	a.Printf("%s", address)
	if printOnly {
		return nil
	}
	// The output of a desktop's helper programs does not help a user; the note below does.
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	if err := browser.OpenURL(address); err != nil {
		a.Notef("no browser could be opened here: open the address yourself, within a minute")
	}
	return nil
}

// consoleAddress returns an address that signs in. It asks the gateway whether it has a console.
func (a *app) consoleAddress(ctx context.Context) (string, error) {
	var cfg *config.Config
	if !a.remote() {
		var err error
		if cfg, err = a.loadConfig(ctx); err != nil {
			return "", err
		}
		if !cfg.Console {
			return "", core.Refuse(core.Invalid, "the configuration has no console: set console: true, and start the gateway again")
		}
	}
	base, err := a.address(cfg)
	if err != nil {
		return "", err
	}
	token, err := a.token(ctx)
	if err != nil {
		return "", err
	}
	if token == "" && cfg != nil {
		token = bestToken(cfg.API)
	}
	at := base.JoinPath("console")
	if err := a.hasConsole(ctx, base, at); err != nil {
		return "", err
	}
	a.warnUnencrypted(base, token)
	if token != "" {
		at.Fragment = "/sign-in?code=" + wire.CodeOf(token, a.clock())
	}
	return at.String(), nil
}

// bestToken returns a token with the highest role that reads; "" if there is none.
func bestToken(api config.API) string {
	for _, role := range []core.Role{core.RoleAdmin, core.RoleOperate, core.RoleRead} {
		if all := api.Granting(role); len(all) > 0 {
			return all[0].Reveal()
		}
	}
	return ""
}

// hasConsole refuses a gateway that does not run, or has no console.
func (a *app) hasConsole(ctx context.Context, base, at *url.URL) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return err
	}
	reply, err := remote.HTTPClient(answerTimeout).Do(r)
	if err != nil {
		return a.unanswered(ctx, base, err)
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return core.Refuse(core.Invalid, "the gateway at %s has no console: set console: true in its configuration, and start it again", base.Redacted())
	}
	return core.Refuse(core.Unavailable, "the gateway at %s answered %s", base.Redacted(), reply.Status)
}
