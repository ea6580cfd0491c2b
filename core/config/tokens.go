package config

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// Token is a named token of the API with a role.
type Token struct {
	// Name says whose token it is. Logs and replies show it; required.
	Name string `yaml:"name" required:""`
	// Token is the bearer token, or several of which each is accepted; required.
	Token Secrets `yaml:"token" required:""`
	// Role is send (send events), read (see everything), operate (both, and every change from
	// which nothing is lost) or admin (everything); required.
	Role core.Role `yaml:"role" required:"" oneof:"send read operate admin"`
}

// Granting returns the tokens whose role includes a role. Those of AuthToken come first: they
// have all rights.
func (a API) Granting(role core.Role) Secrets {
	all := slices.Clone(a.AuthToken)
	for _, t := range a.Tokens {
		if t.Role.Includes(role) {
			all = append(all, t.Token...)
		}
	}
	return all
}

// Locked reports whether the API asks for a token.
func (a API) Locked() bool {
	return len(a.AuthToken) > 0 || slices.ContainsFunc(a.Tokens, func(t Token) bool { return len(t.Token) > 0 })
}

// tokens checks the names of tokens, and that each text has one role.
func (k *checker) tokens() {
	named, held := map[string]string{}, map[Secret]string{} // the paths of names and texts so far
	for _, s := range k.API.AuthToken {
		held[s] = "api.auth_token"
	}
	for i, t := range k.API.Tokens {
		path := index("api.tokens", i)
		switch other := named[t.Name]; {
		case t.Name == "": // reported as missing
		case !isName(t.Name):
			k.problem(path+".name", nameRule)
		case slices.Contains(core.ReservedActors(), t.Name):
			k.problem(path+".name", "must be none of %s: the audit has these names for callers without a token of their own", strings.Join(core.ReservedActors(), ", "))
		case other != "":
			k.problem(path+".name", "is the same as %s; each token needs a name of its own", other)
		default:
			named[t.Name] = path + ".name"
		}
		for _, s := range t.Token {
			switch other, here := held[s], path+".token"; {
			case s == "", other == here: // reported as empty, or given twice with one role
			case other != "":
				k.problem(here, "is the same as %s; each token has one role, so it may be given once", other)
			default:
				held[s] = here
			}
		}
	}
}

// console checks that the console is not open to a network.
func (k *checker) console() {
	if k.Console && !k.API.Locked() && !isLoopback(k.Server.Host) {
		k.problem("console", "is open to everyone who reaches this server, since the API has no token: set api.auth_token or api.tokens, or server.host to an address of this machine such as 127.0.0.1")
	}
}

// tokens warns of an API that is open to everyone, and of weak tokens.
func (w warner) tokens() {
	if !w.API.Locked() {
		w.problem("api.auth_token", "not set: everyone may send events and use the management API")
	}
	w.secrets("api.auth_token", w.API.AuthToken...)
	for i, t := range w.API.Tokens {
		path := index("api.tokens", i) + ".token"
		w.secrets(path, t.Token...)
		if t.Role.Includes(core.RoleOperate) {
			continue
		}
		for _, q := range w.SortedQueues() {
			if slices.ContainsFunc(t.Token, func(s Secret) bool { return slices.Contains(q.APIKey, s) }) {
				w.problem(path, "is also %s.api_key, so it receives and acks that queue's messages, which its role %s does not allow", join("queues", q.Name), t.Role)
			}
		}
	}
}
