package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/spf13/cobra"
)

// An answer is the gateway's response to an event.
// The API has the same fields. Jobs is nil if the answer does not say it, which is
// different from 0.
type answer struct {
	StatusCode int     `json:"status_code"`
	EventID    core.ID `json:"event_id"`
	Duplicate  bool    `json:"duplicate"`
	Jobs       *int    `json:"jobs_created"`
	message    string
	lowRole    bool // the role of the token does not allow to send
}

// maxAnswer bounds the bytes of an answer that are read.
// An answer is a few hundred bytes. The bound protects this program from a server that is no
// gateway.
const maxAnswer = 64 << 10

// readAnswer reads an answer as JSON, or as the text that senders of webhooks get.
func readAnswer(r *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return answer{}, err
	}
	var refused struct {
		Error string `json:"error"`
	}
	ans := answer{EventID: core.ID(r.Header.Get("X-Gateway-Event-Id"))}
	// Senders of webhooks get plain text; the API and refusals of it are JSON.
	if json.Unmarshal(body, &ans) != nil || json.Unmarshal(body, &refused) != nil {
		ans.message = strings.TrimSpace(string(body))
		ans.Duplicate = ans.message == "Duplicate event ignored"
	} else {
		ans.message = refused.Error
	}
	ans.StatusCode, ans.lowRole = r.StatusCode, remote.LacksRole(r)
	return ans, nil
}

// unknown reports whether the gateway does not know if it stored the event.
// The gateway answers 503 with an id if its database failed during the commit. Sending the
// event again with that id is safe: it is stored once.
func (ans answer) unknown() bool {
	return ans.StatusCode == http.StatusServiceUnavailable && ans.EventID != ""
}

// refused returns the error for an answer without success.
func (ans answer) refused(source config.Source) error {
	// A refusal is often right about the event and wrong about the place: the user edits one
	// configuration, and the gateway runs with another.
	hint := ""
	switch {
	case ans.StatusCode == http.StatusUnauthorized && source.Type == "event":
		hint = "; is it running with the same api.auth_token and api.tokens?"
	case ans.lowRole:
		hint = "; " + roleAdvice
	case ans.StatusCode == http.StatusUnauthorized && source.Type == "sns":
		hint = "; is it running with the same topic_arns and skip_verify for this source?"
	case ans.StatusCode == http.StatusUnauthorized:
		hint = "; is it running with the same secret for this source?"
	case ans.StatusCode == http.StatusNotFound:
		hint = "; is it running with this configuration?"
	}
	status := strings.TrimSpace(fmt.Sprint(ans.StatusCode, " ", http.StatusText(ans.StatusCode)))
	if ans.message == "" {
		return core.Refuse(core.Invalid, "the gateway answered %s%s", status, hint)
	}
	return core.Refuse(core.Invalid, "the gateway answered %s: %s%s", status, terminal.Clip(ans.message, 200), hint)
}

// printAnswer prints the gateway's answer to an event that it took, and on standard error the
// command that shows the event's jobs.
func (a *app) printAnswer(c *cobra.Command, ans answer) error {
	if a.json {
		return a.PrintJSON(ans)
	}
	a.Printf("%d %s", ans.StatusCode, terminal.Visible(ans.said()))
	if ans.EventID == "" {
		return nil
	}
	a.PrintField("", "event", terminal.Visible(string(ans.EventID)))
	if ans.Jobs != nil && !ans.Duplicate {
		a.PrintField("", "jobs", strconv.Itoa(*ans.Jobs))
	}
	// A server of another kind may send any text as an id. It must not become part of a command
	// that the user copies.
	if _, err := core.ParseID(string(ans.EventID)); err != nil {
		return nil
	}
	a.Notef("see what becomes of it: %s", a.commandLine("gateway inspect "+string(ans.EventID), c.InheritedFlags()))
	return nil
}

// said returns the answer in words.
func (ans answer) said() string {
	switch {
	case ans.message != "":
		return terminal.Clip(ans.message, 200)
	case ans.Duplicate:
		return "Duplicate event ignored"
	case ans.StatusCode == http.StatusAccepted:
		return "Event accepted"
	}
	return "Event received"
}
