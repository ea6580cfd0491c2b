//go:build linux

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const binaryConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
sources:
  app: {type: event, binary: true}
  text: {type: event}
handlers:
  images: {source: app, url: "${RECEIVER}/images"}
queues:
  images: {source: app, max_attempts: 3}
`

// TestBinary follows bytes that are not text through all commands and routes that show or
// resend them.
func TestBinary(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, binaryConfig, r)
	g.start()
	const image = "\x89PNG\r\n\x00\xff\xfe"
	inBase64 := base64.StdEncoding.EncodeToString([]byte(image))
	wantDelivered := func(what string, n int) {
		t.Helper()
		all := r.Await(t, 10*time.Second, "/images", n)
		if d := all[n-1]; d.Body != image || d.Header.Get("Content-Type") != "image/png" {
			t.Errorf("%s: delivered %q as %q, want %q as image/png", what, d.Body, d.Header.Get("Content-Type"), image)
		}
	}

	a := g.post("/events/text/image", image, "Content-Type", "image/png", "Accept", "application/json")
	if a.status != 400 || !strings.Contains(a.body, "binary: true") {
		t.Errorf("a source without binary = %d %s, want 400 that names binary: true", a.status, a.body)
	}
	a = g.post("/events/app/image", image, "Content-Type", "image/png")
	wantAnswer(t, "a source with binary", a, 202, "Event accepted")
	wantDelivered("the event", 1)

	var event struct {
		Payload  string `json:"payload"`
		Encoding string `json:"payload_encoding"`
	}
	if g.runJSON(&event, "inspect", a.eventID()); event.Payload != inBase64 || event.Encoding != "base64" {
		t.Errorf("inspect --json shows %+v, want %s in base64", event, inBase64)
	}
	if out := g.run("inspect", a.eventID()); !strings.Contains(out, "no text") {
		t.Errorf("inspect shows %s, want that the payload is no text", out)
	}
	got, err := fetch(pooled, request{method: "GET", url: g.url("/api/queues/images/messages")})
	if err != nil || !strings.Contains(got.body, `"payload":"`+inBase64+`","payload_encoding":"base64"`) {
		t.Errorf("the message of the queue is %s, want base64", got.body)
	}

	g.run("events", "replay", "-y")
	wantDelivered("a replay", 2)

	exported := filepath.Join(t.TempDir(), "export")
	line := g.run("export", "events")
	if err := json.Unmarshal([]byte(line), &event); err != nil || event.Payload != inBase64 || event.Encoding != "base64" {
		t.Errorf("export = %s (%v), want %s in base64", line, err, inBase64)
	}
	if err := os.WriteFile(exported, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("replay-local", exported, "-y")
	wantDelivered("replay-local", 3)

	file := filepath.Join(t.TempDir(), "image.png")
	if err := os.WriteFile(file, []byte(image), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("send", "-s", "app", "-t", "image", "-f", file, "--raw")
	if d := r.Await(t, 10*time.Second, "/images", 4)[3]; d.Body != image || d.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("send: delivered %q as %q, want %q as application/octet-stream", d.Body, d.Header.Get("Content-Type"), image)
	}
}
