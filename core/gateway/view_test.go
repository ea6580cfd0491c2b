package gateway_test

import (
	"strings"
	"testing"
)

// An event whose payload cannot be parsed is refused if a field of a handler reads the payload.
func TestPayloadsThatCannotBeRead(t *testing.T) {
	url, _ := recorder(t)
	deep := `{"a": ` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}"
	for fields, want := range map[string]int{
		"method: PUT": 202, "transform: '{\"a\": {{$.a}}}'": 400, "filter: exists $.a": 400, "idempotency_key: $.a": 400,
	} {
		w := wire(t, billing(url, fields))
		if got := post(t, w.url+"/events/shop/order", deep).StatusCode; got != want {
			t.Errorf("{%s}: %d, want %d", fields, got, want)
		}
	}
}
