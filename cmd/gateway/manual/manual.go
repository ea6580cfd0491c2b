// Package manual has the chapters of the manual.
//
// The idea to know: "gateway help <topic>" prints the same texts that the operator console shows, and both
// need no network.
//
// manual imports only the standard library.
package manual

import (
	"embed"
	"encoding/json"
)

//go:embed *.md
var files embed.FS

// A Topic is the name of a chapter: its file without the ending.
type Topic struct {
	Name  string
	About string // its subject, in one line
}

// topics are the chapters in the order in which they can be read through.
var topics = [...]Topic{
	{"first-steps", "Build it, start it, send an event, look at it"},
	{"events-in", "Routes, payloads, CloudEvents, SNS, schedules, duplicates, limits"},
	{"verification", "How webhooks prove their senders"},
	{"deliveries", "Headers, retries, gRPC, rate limits, circuit breakers"},
	{"pace-and-order", "Holds, delays, cancel and lines"},
	{"expressions", "Filters, transforms and paths"},
	{"pull-queues", "Consumers that receive and acknowledge messages"},
	{"workflows", "Steps, choices, branches, waits, callbacks"},
	{"alerts", "Dead jobs, forged events and health, told to people"},
	{"config-files", "Variables, overlays, files at an address, reload"},
	{"configuration", "Every field of gateway.yaml"},
	{"databases", "SQLite, PostgreSQL, MySQL, Cloudflare D1"},
	{"production", "Commands, production, retention, backups, health"},
	{"recipes", "Change secrets, move to PostgreSQL, restore, size the disk"},
	{"metrics-and-logs", "Prometheus, logs, OpenTelemetry traces"},
	{"http-api", "The management API"},
	{"functions", "AWS Lambda: deployment, differences, costs"},
	{"security", "Settings that keep attackers out"},
	{"performance", "All measured figures, and how they were taken"},
	{"upgrading", "To a newer version"},
	{"inside", "How it works inside"},
}

// Topics returns the topics in the order in which their chapters can be read through. No topic is the
// name of a command.
func Topics() []Topic { return topics[:] }

// Text returns the chapter of a topic, in Markdown. It is false if there is none.
func (t Topic) Text() (string, bool) {
	text, err := files.ReadFile(t.Name + ".md")
	return string(text), err == nil
}

// JSON returns all chapters: {"chapters": [{"name", "about", "text"}]}.
func JSON() []byte {
	type chapter struct {
		Name  string `json:"name"`
		About string `json:"about"`
		Text  string `json:"text"`
	}
	var all struct {
		Chapters []chapter `json:"chapters"`
	}
	for _, t := range topics {
		text, _ := t.Text() // a test reads all
		all.Chapters = append(all.Chapters, chapter{t.Name, t.About, text})
	}
	encoded, _ := json.Marshal(all) // texts can be encoded
	return encoded
}
