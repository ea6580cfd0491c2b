package web_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/infra/test/golden"
)

// TestTranscripts sends the requests of testdata/*.txtar over a connection each
// and compares the replies. A transcript consists of sections:
//
//	-- setup --           starts a new gateway; one setting of world.set a line
//	-- any other name --  a request. Host and Content-Length are added if they are
//	                      missing, \xNN in it is that byte. If the name ends in
//	                      "verbatim" nothing is added.
//	-- reply --           what the request before it is answered, without Date
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	transcript, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	address := newWorld(t).serve()
	var played []txtar.File
	var name, reply string
	for _, section := range transcript.Files {
		switch section.Name {
		case "setup":
			address = newWorld(t, strings.Split(strings.TrimSpace(string(section.Data)), "\n")...).serve()
			played = append(played, section)
		case "reply":
			golden.Compare(t, name, string(section.Data), reply)
		default:
			name, reply = section.Name, exchange(t, address, section)
			played = append(played, section, txtar.File{Name: "reply", Data: []byte(reply)})
		}
	}
	transcript.Files = played
	if golden.Updating() {
		golden.Write(t, file, txtar.Format(transcript))
	}
}

// exchange sends a request and returns the reply as transcripts show it.
func exchange(t *testing.T, address string, section txtar.File) string {
	t.Helper()
	c := dial(t, address)
	if _, err := c.Write(requestOf(section)); err != nil {
		t.Fatalf("%s: %v", section.Name, err)
	}
	method, _, _ := strings.Cut(string(section.Data), " ")
	raw, err := readReply(c, method)
	if err != nil {
		t.Fatalf("%s: %v, after %q", section.Name, err, raw)
	}
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	head = regexp.MustCompile(`\r\nDate: [^\r]*`).ReplaceAllString(head, "")
	text := strings.ReplaceAll(head, "\r\n", "\n") + "\n"
	if body != "" {
		text += "\n" + body + "\n"
	}
	return text
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

var escape = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// requestOf is the bytes of a request as a transcript writes it.
func requestOf(section txtar.File) []byte {
	text := escape.ReplaceAllStringFunc(string(section.Data), func(s string) string {
		b, _ := strconv.ParseUint(s[2:], 16, 8)
		return string([]byte{byte(b)})
	})
	head, body, _ := strings.Cut(text, "\n\n")
	head, body = strings.TrimSuffix(head, "\n"), strings.TrimSuffix(body, "\n")
	has := func(name string) bool { return strings.Contains(strings.ToLower(head), "\n"+name+":") }
	if !strings.HasSuffix(section.Name, "verbatim") {
		if !has("host") {
			head += "\nHost: gateway"
		}
		if !has("content-length") && !has("transfer-encoding") && body != "" {
			head += fmt.Sprintf("\nContent-Length: %d", len(body))
		}
	}
	if has("transfer-encoding") {
		body = strings.ReplaceAll(body, "\n", "\r\n") + "\r\n\r\n"
	}
	return []byte(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body)
}

// readReply reads one reply and returns it as it came.
func readReply(c io.Reader, method string) (string, error) {
	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &raw))
	reply, err := http.ReadResponse(r, &http.Request{Method: method})
	if err == nil {
		_, err = io.Copy(io.Discard, reply.Body)
	}
	return raw.String(), err
}
