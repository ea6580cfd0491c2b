package gateway_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	record "github.com/eventgateway/gateway/core/wire"
)

const drawn = `
sources:
  app: {type: event}
  hooks: {type: webhook, verify: github, secret: a-secret-of-github}
  topic: {type: sns}
  nightly: {type: cron, schedule: "@daily"}
handlers:
  billing:
    source: app
    events: [invoice.paid]
    url: "https://192.0.2.1/in?key=sesame#part"
    filter: "$.total > 10"
    transform: '{"n": 1}'
    idempotency_key: $.id
    delay: 1500ms
    lines: {key: $.customer}
    rate_limit: 20
    retry: {max: 7}
queues:
  orders: {source: hooks, lines: {key: $.id, limit: 3}, visibility_timeout: 45s}
  few: {source: topic, max_attempts: 4}
workflows:
  fulfil:
    source: nightly
    steps: [{name: reserve, type: http, url: "http://192.0.2.1/"}]
alerts: {url: "https://hooks.example.com/services/sesame", type: slack, on: [dlq, held]}
`

// TestTopology: the topology has each configured entry, and no part of an address that may be a
// secret. A gateway shows the configuration that it follows now.
func TestTopology(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	got := told[record.Topology](t, newGateway(t, load(t, drawn), store).Handler(), "GET /api/topology", "")
	for i, s := range got.Sources {
		if s.Type != "cron" {
			continue
		}
		if len(s.Next) != record.NextTimes {
			t.Errorf("%s: next = %v, want %d times", s.Name, s.Next, record.NextTimes)
		}
		for n, at := range s.Next {
			if n > 0 && at.Sub(s.Next[n-1].Time).Hours() != 24 || at.Hour() != 0 || at.Minute() != 0 {
				t.Errorf("%s: next = %v, want midnights that follow each other", s.Name, s.Next)
			}
		}
		got.Sources[i].Next = nil
	}
	want := record.Topology{
		Sources: []record.ConfiguredSource{
			{Name: "app", Type: "event", Path: "/events/app/{event_type}"},
			{Name: "hooks", Type: "webhook", Path: "/webhooks/hooks", Verify: "github"},
			{Name: "nightly", Type: "cron", Schedule: "@daily", Timezone: "UTC"},
			{Name: "topic", Type: "sns", Path: "/sns/topic"},
		},
		Consumers: []record.ConfiguredConsumer{
			{Name: "billing", Kind: "handler", Source: "app", Events: []string{"invoice.paid"}, Filter: "$.total > 10", IdempotencyKey: "$.id", Delay: 1.5,
				Lines: &record.Lined{Key: "$.customer", Limit: 1, OnDead: "hold"}, Attempts: 7, URL: "https://192.0.2.1/in", Protocol: "http", Method: "POST", Transform: true, RateLimit: 20},
			{Name: "queue/few", Kind: "queue", Source: "topic", Events: []string{}, Attempts: 4, VisibilityTimeout: 30},
			{Name: "queue/orders", Kind: "queue", Source: "hooks", Events: []string{}, Lines: &record.Lined{Key: "$.id", Limit: 3, OnDead: "skip"}, VisibilityTimeout: 45},
			{Name: "workflow/fulfil", Kind: "workflow", Source: "nightly", Events: []string{}, Steps: []string{"reserve"}},
		},
		Alerts: []record.ConfiguredAlert{{Name: "1", Host: "hooks.example.com", Type: "slack", On: []string{"dlq", "held"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("topology (-want +got):\n%s", diff)
	}
	empty := told[record.Topology](t, newGateway(t, load(t, "sources: {}"), store).Handler(), "GET /api/topology", "")
	if diff := cmp.Diff(record.Topology{Sources: []record.ConfiguredSource{}, Consumers: []record.ConfiguredConsumer{}, Alerts: []record.ConfiguredAlert{}}, empty); diff != "" {
		t.Errorf("topology of nothing (-want +got):\n%s", diff)
	}
}
