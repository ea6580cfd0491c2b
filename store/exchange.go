package store

import (
	"encoding/json"

	"github.com/eventgateway/gateway/core"
)

// A storedExchange is a core.Exchange in the column exchange: JSON, without the body. Fields that a
// later version adds are ignored by an earlier one.
type storedExchange struct {
	Method       string            `json:"method"`
	URL          string            `json:"url"`
	Headers      map[string]string `json:"headers,omitempty"`
	ReplyHeaders map[string]string `json:"reply_headers,omitzero"`
	Cut          bool              `json:"cut,omitzero"`
	BodySize     int               `json:"body_size,omitzero"`
	BodySHA256   string            `json:"body_sha256,omitzero"`
	KeptBody     int               `json:"kept_body,omitzero"`
	Unmasked     []string          `json:"unmasked,omitempty"`
}

// exchangeColumnsOf returns the columns exchange and sent_body of an attempt.
func exchangeColumnsOf(x *core.Exchange) (exchange, body any) {
	if x == nil {
		return nil, nil
	}
	text, _ := json.Marshal(storedExchange{x.Method, x.URL, x.Headers, x.ReplyHeaders, x.Cut, x.BodySize, x.BodySHA256, x.KeptBody, x.Unmasked}) // no value that JSON does not have
	return string(text), orNull(x.Body)
}

// decodeExchange reads the column exchange. A text that is not as expected counts as none: only the
// gateway writes it.
func decodeExchange(text string) *core.Exchange {
	var x storedExchange
	if text == "" || json.Unmarshal([]byte(text), &x) != nil {
		return nil
	}
	return &core.Exchange{Method: x.Method, URL: x.URL, Headers: x.Headers, ReplyHeaders: x.ReplyHeaders, Cut: x.Cut,
		BodySize: x.BodySize, BodySHA256: x.BodySHA256, KeptBody: x.KeptBody, Unmasked: x.Unmasked}
}
