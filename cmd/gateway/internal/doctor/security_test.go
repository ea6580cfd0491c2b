package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

// TestSpoofable: doctor warns of a database on another machine whose server is not verified.
func TestSpoofable(t *testing.T) {
	for _, c := range []struct{ driver, url, want string }{
		{"postgres", "postgres://u:hunter2@192.0.2.1:5/d?sslmode=require&connect_timeout=1", "192.0.2.1"},
		{"postgres", "postgres://u:hunter2@192.0.2.1:5/d?sslmode=verify-full&connect_timeout=1", ""},
		{"mysql", "mysql://u:hunter2@192.0.2.1:5/d?tls=preferred", "192.0.2.1"},
		{"mysql", "mysql://u:hunter2@127.0.0.1:5/d", ""},
		{"sqlite", "", ""},
	} {
		p := &local{cfg: &config.Config{Database: config.Database{Driver: c.driver, URL: config.Secret(c.url)}}}
		found := fmt.Sprint(p.spoofable())
		if got := strings.Contains(found, "database.url: "); got != (c.want != "") || !strings.Contains(found, c.want) || strings.Contains(found, "hunter2") {
			t.Errorf("%s %s: %s, want a warning of %q", c.driver, c.url, found, c.want)
		}
	}
}
