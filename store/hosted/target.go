package hosted

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// A target is the server that requests go to. It also makes the error texts about that server.
type target struct {
	url   string // of each request
	name  string // the base address, for errors
	token string
	proxy bool
	o     Options
}

func newTarget(o Options) (target, error) {
	t := target{token: o.APIToken, proxy: o.Endpoint != "", o: o}
	base, setting := o.Endpoint, "database.hosted_sql_endpoint"
	if !t.proxy {
		base, setting = o.API, "GATEWAY_HOSTED_SQL_API"
		if base == "" {
			base = defaultAPI
		}
		for name, value := range map[string]string{"account_id": o.AccountID, "database_id": o.DatabaseID} {
			if value == "" {
				return t, core.Refuse(core.Invalid, "database.%s is missing: Cloudflare's API needs it", name)
			}
		}
	}
	if t.token == "" && !t.proxy {
		return t, core.Refuse(core.Invalid, "database.api_token is missing: Cloudflare's API needs it")
	}
	if strings.ContainsFunc(t.token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return t, core.Refuse(core.Invalid, "database.api_token has a blank or a character that no token has")
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return t, core.Refuse(core.Invalid, "%s must be a URL like https://host/path, without user, query and fragment", setting)
	}
	t.name = u.String()
	if t.proxy {
		t.url = u.JoinPath("raw").String()
	} else {
		t.url = u.JoinPath("client/v4/accounts", url.PathEscape(o.AccountID), "d1/database", url.PathEscape(o.DatabaseID), "raw").String()
	}
	return t, nil
}

// setting returns the refusal for a failure of class Misconfigured. It names the wrong setting in
// one sentence.
func (t target) setting(f *failure) error {
	access := f.status == http.StatusUnauthorized || f.status == http.StatusForbidden || slices.Contains(noAccess, f.code)
	switch {
	case f.status >= 300 && f.status < 400:
		return core.Refuse(core.Invalid, "%s sends requests elsewhere (%v): set database.hosted_sql_endpoint to the address it names", t.name, f)
	case access && t.proxy:
		return core.Refuse(core.Invalid, "the proxy at %s refuses database.api_token: it must be the Worker's secret API_TOKEN (%v)", t.name, f)
	case access:
		return core.Refuse(core.Invalid, "Cloudflare refuses database.api_token: it must be a token of database.account_id %s with the permission D1 Edit (%v)", t.o.AccountID, f)
	case t.proxy:
		return core.Refuse(core.Invalid, "there is no D1 proxy at %s: check database.hosted_sql_endpoint (%v)", t.name, f)
	}
	return core.Refuse(core.Invalid, "Cloudflare has no D1 database %s in account %s: check database.database_id and database.account_id (%v)", t.o.DatabaseID, t.o.AccountID, f)
}

// where names the setting that has the address.
func (t target) where() string {
	if t.proxy {
		return "database.hosted_sql_endpoint"
	}
	return "GATEWAY_HOSTED_SQL_API"
}

// opening rewrites an Unavailable error of Open for the operator: the text names the server and
// the settings to check. Other errors stay as they are.
func (t target) opening(err error) error {
	var r *core.Refusal
	if !errors.As(err, &r) || r.Kind != core.Unavailable {
		return err
	}
	var setting *core.Refusal
	if errors.As(r.Cause, &setting) && setting.Kind == core.Invalid {
		return setting
	}
	check := "the network"
	if t.proxy {
		check = "database.hosted_sql_endpoint and the network"
	}
	var f *failure
	if errors.As(r.Cause, &f) {
		return &core.Refusal{Kind: core.Unavailable, Message: "the database at " + t.name + " does not answer as D1 does: check " + check,
			Cause: r.Cause, RetryAfter: r.RetryAfter}
	}
	return &core.Refusal{Kind: core.Unavailable, Message: "the database at " + t.name + " cannot be reached: check " + check, Cause: cause(r.Cause)}
}

// cause takes the error out of a *url.Error, whose text repeats the URL.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// hide replaces the token in a message, in case the server repeats it. A token of fewer than 8
// bytes is left: it may be part of an ordinary word, and is too short to be a secret.
func (t target) hide(message string) string {
	if len(t.token) < 8 {
		return message
	}
	return strings.ReplaceAll(message, t.token, "(the token)")
}
