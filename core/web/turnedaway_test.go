package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/web"
)

// A listener is a receiver that admits every request and records the refusals.
type listener struct{ refusals []string }

func (*listener) Admit(intake.Kind, string, netip.Addr) error { return nil }

func (*listener) Receive(context.Context, intake.Request) (intake.Result, error) {
	return intake.Result{}, nil
}

func (l *listener) Handshake(intake.Kind, string, string, netip.Addr) (string, error) {
	return "*", nil
}

func (l *listener) Refused(source string, err error) {
	kind := core.Kind(0)
	if refusal, ok := errors.AsType[*core.Refusal](err); ok {
		kind = refusal.Kind
	}
	word := map[core.Kind]string{core.Invalid: "invalid", core.TooLarge: "too large", core.Unauthorized: "unauthorized", core.Unsupported: "unsupported"}
	l.refusals = append(l.refusals, source+" "+word[kind])
}

// A dawdler is a body that does not come in time.
type dawdler struct{}

func (dawdler) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (dawdler) Close() error             { return nil }

// TestReceiversLearnOfRefusals: a request that a guard refuses is reported to the receiver,
// so that the metrics of its source count it.
func TestReceiversLearnOfRefusals(t *testing.T) {
	tests := []struct {
		path   string
		change func(*http.Request)
		want   string
	}{
		{"/webhooks/plain", func(*http.Request) {}, ""},
		{"/webhooks/plain", func(r *http.Request) { r.ContentLength = 5000 }, "plain too large"},
		{"/webhooks/plain", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, "plain unsupported"},
		{"/sns/topic", func(r *http.Request) { r.ContentLength = 4 }, "topic invalid"},
		{"/sns/topic", func(r *http.Request) { r.Body = dawdler{} }, "topic invalid"},
		{"/events/shop/order", func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") }, "shop unauthorized"},
		{"/events/order", func(r *http.Request) { r.Header.Del("Authorization") }, "app unauthorized"},
	}
	for _, tt := range tests {
		l := &listener{}
		h := web.Handler(web.Settings{MaxBodySize: 1000, MaxInbound: 1}, web.Intake(web.IntakeOptions{Receiver: l, Tokens: []web.Token{{Text: "s3cret", Role: core.RoleAdmin}}}))
		r := httptest.NewRequest("POST", tt.path, strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer s3cret")
		tt.change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if !slices.Equal(l.refusals, want) {
			t.Errorf("%s answered %d, and reported %q, want %q", tt.path, w.Code, l.refusals, want)
		}
	}
}

func (*listener) ReceiveAll(context.Context, intake.Request) ([]core.Receipt, error) { return nil, nil }
