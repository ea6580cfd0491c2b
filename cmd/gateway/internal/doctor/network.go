package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
)

// healthTimeout bounds the request for a gateway's health. It is longer than the gateway waits
// for its database before it answers that it is unhealthy.
const healthTimeout = 5 * time.Second

// maxHealth bounds the bytes of a reply of /health that are read.
const maxHealth = 64 << 10

// server asks the gateway at the configured address for its health.
func (l *local) server(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	// The request goes to the address of the configuration, so that it also finds another
	// program on the gateway's port.
	base, err := l.Address(l.cfg)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("health").String(), nil)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	request.Header.Set("User-Agent", "gateway/"+l.Version)
	response, err := remote.HTTPClient(healthTimeout).Do(request)
	// Before the first start this is as it should be. The handlers check uses the result: a
	// handler of this gateway itself cannot answer either.
	if l.noServer = errors.Is(err, syscall.ECONNREFUSED); l.noServer {
		return []Check{{Status: Skipped, Detail: fmt.Sprintf("no gateway runs at %s", base), Remedy: fmt.Sprintf("%q starts one", l.Command("start"))}}
	}
	if err != nil {
		return []Check{{Status: Failed, Detail: fmt.Sprintf("no answer from %s: %v", base, remote.Cause(err)), Remedy: "see the log of the program that runs there"}}
	}
	defer response.Body.Close()
	return []Check{healthOf(base, response)}
}

// healthOf judges a response of /health.
func healthOf(base *url.URL, response *http.Response) Check {
	var health struct {
		Status string `json:"status"`
		Depth  *int   `json:"queue_depth"`
		Detail string `json:"detail"`
		Config *struct {
			State string `json:"state"`
			Since string `json:"since"`
		} `json:"config"`
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxHealth))
	_ = json.Unmarshal(body, &health) // a server that is no gateway may send anything
	switch {
	case response.StatusCode == http.StatusOK && health.Status == "ok" && health.Config != nil:
		return Check{
			Status: Warning,
			Detail: fmt.Sprintf("the gateway at %s does not follow its newest configuration since %s: %s", base, terminal.Clip(health.Config.Since, 50), terminal.Clip(health.Config.State, 50)),
			Remedy: "its log says why",
		}
	case response.StatusCode == http.StatusOK && health.Status == "ok" && health.Depth != nil:
		return Check{Status: OK, Detail: fmt.Sprintf("a gateway runs at %s; unfinished jobs: %d", base, *health.Depth)}
	case response.StatusCode == http.StatusServiceUnavailable && health.Status == "error":
		return Check{
			Status: Failed,
			Detail: fmt.Sprintf("the gateway at %s is not well: %s", base, terminal.Clip(health.Detail, 200)),
			Remedy: "see its log",
		}
	}
	return Check{
		Status: Failed,
		Detail: fmt.Sprintf("the server at %s is not a gateway: %s", base, remote.Status(response.StatusCode)),
		Remedy: "stop it, or set server.port",
	}
}

const (
	// placeTimeout bounds the call of one place. placesAtOnce is the number of concurrent
	// calls.
	placeTimeout = 5 * time.Second
	placesAtOnce = 16
)

// A place is a destination of events: its name among the checks, and its address.
type place struct {
	name, url string
	grpc      bool
}

// handlers calls each handler to see whether it can be reached.
func (l *local) handlers(ctx context.Context) []Check {
	var places []place
	for _, h := range l.cfg.SortedHandlers() {
		places = append(places, place{name: "handlers." + h.Name, url: h.URL, grpc: h.Type == "grpc"})
	}
	return l.call(ctx, places)
}

// workflows calls each address that a step calls, once, under the name of the first such step.
func (l *local) workflows(ctx context.Context) []Check {
	seen := map[string]bool{}
	var places []place
	for _, w := range l.cfg.SortedWorkflows() {
		for _, to := range stepPlaces("workflows."+w.Name, w.Steps) {
			if !seen[to.url] {
				seen[to.url] = true
				places = append(places, to)
			}
		}
	}
	return l.call(ctx, places)
}

// stepPlaces returns the addresses that the steps of a list call, including steps in branches
// and iterators. The names are the paths of the steps.
func stepPlaces(path string, steps []config.Step) (places []place) {
	add := func(path, url string) {
		if url != "" {
			places = append(places, place{name: path, url: url})
		}
	}
	for _, s := range steps {
		here := path + "." + s.Name
		add(here, s.URL)
		for _, b := range s.Branches {
			add(here+"."+b.Name, b.URL)
			places = append(places, stepPlaces(here+"."+b.Name, b.Steps)...)
		}
		if s.Iterator != nil {
			places = append(places, stepPlaces(here, []config.Step{*s.Iterator})...)
		}
	}
	return places
}

// alerts calls each place for alerts to see whether it can be reached.
func (l *local) alerts(ctx context.Context) []Check {
	var places []place
	for i, a := range l.cfg.Alerts {
		places = append(places, place{name: fmt.Sprintf("alerts[%d]", i), url: a.URL.Reveal()})
	}
	return l.call(ctx, places)
}

// call calls each place through the same address guard as deliveries.
func (l *local) call(ctx context.Context, places []place) []Check {
	client := egress.New(egress.Options{AllowPrivate: l.cfg.Server.AllowPrivateURLs, Version: l.Version})
	defer client.Close()
	calls := client.HTTPClient(placeTimeout)
	found := make([]Check, len(places))
	slots := make(chan struct{}, placesAtOnce)
	var wg sync.WaitGroup
	for i, to := range places {
		// The loop waits for a slot, so at most placesAtOnce goroutines exist.
		slots <- struct{}{}
		wg.Go(func() {
			if to.grpc {
				found[i] = l.reach(ctx, client, to)
			} else {
				found[i] = l.head(ctx, calls, to)
			}
			found[i].Name = to.name
			<-slots
		})
	}
	wg.Wait()
	return found
}

// head judges the answer to a HEAD request.
func (l *local) head(ctx context.Context, calls *http.Client, to place) Check {
	u, err := url.Parse(to.url)
	if err != nil {
		return Check{Status: Failed, Detail: "the url is not a valid address"}
	}
	// An example configuration delivers to the echo route of its own gateway.
	if l.noServer && l.own(u) {
		return Check{Status: Skipped, Detail: "it is this gateway, which does not run"}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, to.url, nil)
	if err != nil {
		return Check{Status: Failed, Detail: "the url is not a valid address"}
	}
	request.Header.Set("User-Agent", "gateway/"+l.Version)
	response, err := calls.Do(request)
	if err != nil {
		return unreached(u, err)
	}
	response.Body.Close()
	return alive(u, response.StatusCode)
}

// reach judges whether a gRPC receiver accepts connections. It makes no call: the receiver's
// only method would take the call for a delivery.
func (l *local) reach(ctx context.Context, client *egress.Client, to place) Check {
	u, err := url.Parse(to.url)
	if err != nil {
		return Check{Status: Failed, Detail: "the url is not a valid address"}
	}
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	if err := client.Connect(ctx, to.url); err != nil {
		return unreached(u, err)
	}
	return Check{Status: OK, Detail: fmt.Sprintf("%s accepts connections (gRPC handlers are not called)", host(u))}
}

// own reports whether an address is the gateway's own.
func (l *local) own(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Port() == strconv.Itoa(l.cfg.Server.Port) && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// alive judges the status of an answer. A handler that serves only POST may answer HEAD with
// any 4xx status, or with 501 if it does not know the method.
func alive(u *url.URL, code int) Check {
	c := Check{Status: OK, Detail: fmt.Sprintf("%s answers (%s to HEAD)", host(u), remote.Status(code))}
	switch {
	// Every other status shows that a program is there. Its answer to HEAD says little about
	// its answer to POST.
	case code >= 500 && code != http.StatusNotImplemented:
		c.Status, c.Remedy = Failed, "see the log of the program that runs there"
	case code >= 300 && code < 400 && code != http.StatusNotModified:
		c.Status, c.Remedy = Warning, "deliveries follow no redirects: configure the address that it leads to"
	}
	return c
}

// host returns the scheme and host of an address: the other parts may be secret.
func host(u *url.URL) string { return u.Scheme + "://" + u.Host }

// quotable returns the text of an error, unless the text repeats a part of the address. A
// server may send back parts of the request, and they may be secret.
func quotable(u *url.URL, err error) string {
	text := remote.Cause(err).Error()
	split := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, part := range strings.FieldsFunc(u.RequestURI(), split) {
		if len(part) > 3 && strings.Contains(text, part) {
			return "its reply is not understood"
		}
	}
	return text
}

// unreached explains why there was no answer.
func unreached(u *url.URL, err error) Check {
	// The kinds are distinguished since their remedies differ: the name, the network, the
	// protocol, the certificate, the process.
	var dns *net.DNSError
	var dial *net.OpError
	var errno syscall.Errno
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	c := Check{Status: Failed, Detail: fmt.Sprintf("%s gives no answer: %s", host(u), quotable(u, err))}
	switch {
	case errors.As(err, &dns):
		c.Detail, c.Remedy = fmt.Sprintf("%s is a name that does not resolve: %s", u.Hostname(), dns.Err), "correct the url, or see to the DNS"
	// A timeout is asked for before other network errors, since those contain it.
	case errors.As(err, &timeout) && timeout.Timeout():
		c.Detail, c.Remedy = fmt.Sprintf("%s gives no answer within %s", host(u), placeTimeout), "see whether it is overloaded, or a firewall in between"
	case errors.Is(err, egress.ErrNoHTTP2):
		c.Detail = fmt.Sprintf("%s takes no gRPC: %v", host(u), err)
		c.Remedy = "turn HTTP/2 (ALPN h2) on in the receiver or in the proxy before it, or set type to http"
	case errors.As(err, &certificate):
		c.Remedy = certificateRemedy(certificate.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		c.Remedy = "the receiver there speaks no TLS: write http:// if that is meant"
	case errors.As(err, &errno):
		c.Detail, c.Remedy = fmt.Sprintf("%s cannot be reached: %s", host(u), errno.Error()), "start the receiver, or correct the url"
	case errors.As(err, &dial) && dial.Op == "dial": // the address guard refused it
		c.Detail, c.Remedy = fmt.Sprintf("%s is an address that nothing is sent to: %v", host(u), dial.Err), "correct the url"
		if private(dial.Addr) {
			c.Remedy = "set server.allow_private_urls: true if it is meant to be there"
		}
	}
	return c
}

// certificateRemedy returns the remedy for a certificate that is not trusted.
func certificateRemedy(err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew its certificate, unless it is this machine's clock that is wrong"
	case errors.As(err, &name):
		return "correct the url, or have its certificate name that host"
	}
	return "have its certificate signed by an authority known here, or make that one known (SSL_CERT_FILE)"
}

// private reports whether server.allow_private_urls would allow an address.
func private(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && (tcp.IP.IsPrivate() || tcp.IP.IsLoopback())
}
