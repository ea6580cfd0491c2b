package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
)

// The formats of a place.
const (
	Generic = "generic" // the alert as it is stored
	Slack   = "slack"   // an incoming webhook of Slack, or of a compatible service
	Discord = "discord" // a webhook of Discord
)

// Sizes are counted in UTF-16 code units of the text as it is sent, with escapes. The
// services count the same number or fewer.
const (
	// Slack cuts blocks at 3,000 and plain text much later; see
	// https://docs.slack.dev/reference/block-kit/blocks/section-block.
	maxSlackText = 2900

	// https://discord.com/developers/docs/resources/message#embed-object-embed-limits.
	// A title and a description together stay below the 6,000 of a whole message.
	maxDiscordContent     = 2000
	maxDiscordTitle       = 256
	maxDiscordDescription = 4096

	maxHeadline = 1000 // of the message within Slack's text
	maxValue    = 1000 // of one field in either
	minValue    = 16   // a line with less room is left out
)

// Pace returns the distance between the starts of posts to a place of this format, so that
// its service does not refuse them. It is zero for a service without such a limit. It
// spaces one place's posts; other senders to the same channel may still exceed the
// service's limit.
func Pace(format string) time.Duration {
	switch format {
	case Slack:
		// One a second, and short bursts of more:
		// https://docs.slack.dev/apis/web-api/rate-limits#overview.
		return time.Second
	case Discord:
		// 5 in 2 seconds and 30 a minute for a channel, as its makers say in
		// https://github.com/discord/discord-api-docs/issues/367; a little slower than
		// that, as posts do not arrive as evenly as they start.
		return 2100 * time.Millisecond
	}
	return 0
}

// Sender makes a sender for a place of this format. Inner posts the converted jobs.
func Sender(inner worker.Sender, format string) worker.Sender {
	return &sender{inner: inner, format: format}
}

type sender struct {
	inner  worker.Sender
	format string
}

// Send implements [worker.Sender].
func (s *sender) Send(ctx context.Context, job core.TakenJob) worker.Reply {
	body, err := Body(s.format, job.Event.Payload)
	if err != nil {
		return worker.Reply{Error: "transform: " + err.Error()}
	}
	job.Event.Payload, job.Event.ContentType = body, "application/json"
	return s.inner.Send(ctx, job)
}

// Body returns the body to post, converted from an alert in the generic form.
//
// All of the alert's content is shown as text: it mentions no users and formats nothing.
// The exception is words between asterisks and similar characters in the message on Slack,
// which has no escape for them. A text that is too long ends in "…"; no character and no
// escape is cut in two.
func Body(format string, generic []byte) ([]byte, error) {
	var n notice
	if err := json.Unmarshal(generic, &n); err != nil {
		return nil, fmt.Errorf("the stored alert is not as expected: %w", err)
	}
	switch format {
	case Generic:
		return generic, nil
	case Slack:
		return json.Marshal(slackBody(n))
	case Discord:
		return json.Marshal(discordBody(n))
	}
	return nil, fmt.Errorf("alert type must be one of %s, %s, %s; not %q", Generic, Slack, Discord, format)
}

type slackMessage struct {
	Text string `json:"text"`
}

// https://docs.slack.dev/messaging/formatting-message-text: mentions and links consist of
// these three characters only.
var slackEscapes = map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"}

func slackBody(n notice) slackMessage {
	headline := fit(n.Message, maxHeadline, slackEscapes)
	return slackMessage{headline + n.details(maxSlackText-units(headline), slackEscapes)}
}

type discordMessage struct {
	Content         string          `json:"content"`
	Embeds          []discordEmbed  `json:"embeds"`
	AllowedMentions discordMentions `json:"allowed_mentions"`
}

type discordEmbed struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

// Without parse, every @everyone and <@id> in the text would notify users. An empty list
// permits none.
type discordMentions struct {
	Parse []string `json:"parse"`
}

// discordEscapes escape the characters that Discord's Markdown uses within a line.
var discordEscapes = backslashes("\\`*_~|<>[]")

func backslashes(characters string) map[rune]string {
	escapes := map[rune]string{}
	for _, r := range characters {
		escapes[r] = `\` + string(r)
	}
	return escapes
}

func discordBody(n notice) discordMessage {
	return discordMessage{
		Content: fit(n.Message, maxDiscordContent, discordEscapes),
		Embeds: []discordEmbed{{
			Title:       fit(string(n.Alert), maxDiscordTitle, discordEscapes),
			Description: strings.TrimPrefix(n.details(maxDiscordDescription, nil), "\n"),
		}},
		AllowedMentions: discordMentions{Parse: []string{}},
	}
}

// details returns the fields of an alert, one on each line, within room units.
//
// Values stand in code spans, in which neither service looks for mentions, links or
// formatting. Only a backtick has a meaning there, and becomes an apostrophe.
func (n notice) details(room int, escapes map[rune]string) string {
	var b strings.Builder
	for _, f := range n.fields() {
		label := "\n" + f.name + ": "
		free := room - len(label) - len("``")
		if f.value == "" || free < minValue {
			continue
		}
		value := fit(strings.ReplaceAll(f.value, "`", "'"), min(free, maxValue), escapes)
		room = free - units(value)
		b.WriteString(label + "`" + value + "`")
	}
	return b.String()
}

type field struct{ name, value string }

// fields returns the fields in the order in which they are shown. Fields that may be long
// come last, so that the others keep their room.
func (n notice) fields() []field {
	return []field{
		{"source", n.Source},
		{"event_type", n.EventType},
		{"handler", n.Handler},
		{"queue", n.Queue},
		{"workflow", n.Workflow},
		{"action", n.Action},
		{"count", number(n.Count)},
		{"left_out", number(n.LeftOut)},
		{"attempts", number(n.Attempts)},
		{"client_ip", n.ClientIP},
		{"event_id", n.EventID},
		{"job_id", n.JobID},
		{"operation", n.Operation},
		{"since", n.Since},
		{"created_at", n.CreatedAt},
		{"reason", n.Reason},
		{"error", n.Error},
	}
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// fit returns s on one line, escaped, in at most limit units. If s has more, fit keeps as
// many whole characters as leave room for a "…".
func fit(s string, limit int, escapes map[rune]string) string {
	var b strings.Builder
	used, cut := 0, 0 // cut is where to end if the text does not fit
	for _, r := range s {
		piece, escaped := escapes[r]
		if !escaped {
			piece = string(shown(r))
		}
		if used += units(piece); used > limit {
			return b.String()[:cut] + "…"
		}
		b.WriteString(piece)
		if used < limit {
			cut = b.Len()
		}
	}
	return b.String()
}

// shown replaces a character by a space if it would begin a new line or change the
// direction of writing, and so falsify the text.
func shown(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
		return ' '
	}
	return r
}

// units returns the length of s in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
