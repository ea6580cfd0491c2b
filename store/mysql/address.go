package mysql

import (
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/core"
)

// Bounds of waiting for the server: for a connection, and for a packet. Callers
// have shorter bounds for most of what they do.
const (
	dialTimeout   = 5 * time.Second
	packetTimeout = 30 * time.Second
)

// An address is where a database is and how to talk to it.
type address struct {
	config *mysql.Config
}

// parseAddress reads either form of a URL. What the statements rely on is set here
// or by settings, whatever the URL says; its other parameters are kept.
func parseAddress(text string) (*address, error) {
	c, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	if c.DBName == "" {
		return nil, core.Refuse(core.Invalid, "database.url names no database: put it after the host, mysql://user@host:3306/gateway")
	}
	c.InterpolateParams, c.MultiStatements, c.ClientFoundRows = true, true, true
	c.ParseTime, c.RejectReadOnly, c.AllowAllFiles, c.CheckConnLiveness = false, false, false, true
	c.MaxAllowedPacket = 0 // what the server says
	c.Timeout = orElse(c.Timeout, dialTimeout)
	c.ReadTimeout, c.WriteTimeout = orElse(c.ReadTimeout, packetTimeout), orElse(c.WriteTimeout, packetTimeout)
	c.Logger = &mysql.NopLogger{} // what it logs comes back as an error as well
	return &address{c}, c.Apply(mysql.Charset("utf8mb4", ""))
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func parseConfig(text string) (*mysql.Config, error) {
	rest, isURL := strings.CutPrefix(text, "mysql://")
	if !isURL {
		rest, isURL = strings.CutPrefix(text, "mariadb://")
	}
	if isURL && !strings.Contains(rest, "@unix(") && !strings.Contains(rest, "@tcp(") {
		return parseURL(text)
	}
	c, err := mysql.ParseDSN(rest)
	if err != nil {
		return nil, malformed(err)
	}
	if isURL {
		var errs [2]error
		c.User, errs[0] = url.PathUnescape(c.User)
		c.Passwd, errs[1] = url.PathUnescape(c.Passwd)
		if errs[0] != nil || errs[1] != nil {
			return nil, malformed(url.EscapeError("%"))
		}
	}
	return c, nil
}

func parseURL(text string) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, malformed(err)
	}
	if u.Host == "" || u.Fragment != "" || strings.Contains(strings.Trim(u.Path, "/"), "/") {
		return nil, malformed(nil)
	}
	c, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, malformed(err)
	}
	if c.TLSConfig != "" {
		c.TLS = nil // it was made for the address of the line above
	}
	c.User, c.DBName = u.User.Username(), strings.Trim(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr = "tcp", u.Host
	if u.Port() == "" {
		c.Addr = strings.TrimSuffix(c.Addr, ":") + ":3306"
	}
	return c, nil
}

// malformed says what form a URL has. Of the parsers' errors it passes on what
// cannot repeat the password.
func malformed(err error) error {
	reason := ""
	if e := driverReason(err); e != "" {
		reason = " (" + e + ")"
	}
	return core.Refuse(core.Invalid, "database.url is malformed%s: write mysql://user:password@host:3306/database, "+
		"with %%40 for @, %%2F for / and %%3A for : in the password", reason)
}

// driverReason is the driver's complaint about a parameter.
func driverReason(err error) string {
	if err == nil {
		return ""
	}
	for _, about := range []string{"invalid value / unknown config name", "invalid bool value", "invalid value / unknown server pub key name"} {
		if strings.Contains(err.Error(), about) {
			return err.Error()
		}
	}
	return ""
}

// String is the address without user and password.
func (a *address) String() string { return a.config.Addr }
