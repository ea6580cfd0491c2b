package doctor

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/store/mysql"
	"github.com/eventgateway/gateway/store/postgres"
)

// security checks the rights of every client that can reach the gateway.
func (l *local) security(context.Context) []Check {
	// The worst damage comes first: open doors first, then addresses inside of the network,
	// then repeated requests.
	found := l.warned(true)
	if l.cfg.Server.AllowPrivateURLs {
		found = append(found, Check{
			Status: Warning,
			Detail: "server.allow_private_urls: is on: events may be sent to addresses inside of this network",
			Remedy: "leave it out unless handlers are there",
		})
	}
	found = append(found, l.repeatable()...)
	found = append(found, l.spoofable()...)
	if len(found) == 0 {
		return []Check{{Status: OK, Detail: "the API and every queue ask for a token, and every webhook is verified"}}
	}
	return found
}

// repeatable finds sources whose requests an attacker could capture and send again as another
// delivery.
func (l *local) repeatable() (found []Check) {
	for _, s := range l.cfg.SortedSources() {
		// A scheme that signs the delivery's id makes repeats visible: the gateway stores the
		// id.
		cover := verify.CoverOf(s.Verify)
		if s.Verify == "" || cover.DeliveryID || s.Dedup == "body" {
			continue
		}
		// The remedy is the weakest change that helps. A hash of the body does so only if the
		// signature covers nothing but the body.
		period, remedy := "", "say dedup: body, unless two equal bodies may be two events"
		if cover.Window > 0 {
			period = fmt.Sprintf(", for %.0f s", cover.Window.Seconds())
		}
		if !cover.BodyAlone {
			remedy = "give its handlers and queues an idempotency_key"
		}
		found = append(found, Check{
			Status: Warning,
			Detail: fmt.Sprintf("sources.%s: a request that somebody captured can be sent again as another delivery%s: %s does not sign the delivery's id", s.Name, period, s.Verify),
			Remedy: remedy,
		})
	}
	return found
}

// spoofable finds a database on another machine whose server another server could pose as.
func (l *local) spoofable() []Check {
	// Each driver knows the options of its address, and returns "" for a database on this
	// machine.
	db, why, remedy := l.cfg.Database, "", ""
	switch db.Driver {
	case "postgres":
		why, remedy = postgres.Unverified(db.URL.Reveal()), "say sslmode=verify-full in it, and sslrootcert=<file> if the server's certificate is of an authority of your own"
	case "mysql":
		why, remedy = mysql.Unverified(db.URL.Reveal()), "say tls=true in it"
	}
	if why == "" {
		return nil
	}
	return []Check{{Status: Warning, Detail: "database.url: " + why, Remedy: remedy}}
}
