package dnsrig

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	s := New(t, func(name string, n int) []string {
		switch name {
		case "one.test":
			return []string{"192.0.2.1", "2001:db8::1"}
		case "turns.test":
			return []string{[]string{"192.0.2.1", "192.0.2.2"}[(n-1)%2]}
		case "alias.test":
			return []string{"one.test"}
		case "mapped.test":
			return []string{"::ffff:192.0.2.7"}
		}
		return nil
	})
	r := s.Resolver()
	for _, c := range []struct {
		name string
		want []string
	}{
		{"one.test.", []string{"192.0.2.1", "2001:db8::1"}},
		{"ONE.test.", []string{"192.0.2.1", "2001:db8::1"}},
		{"alias.test.", []string{"192.0.2.1", "2001:db8::1"}},
		{"mapped.test.", []string{"192.0.2.7"}},
		{"turns.test.", []string{"192.0.2.1"}},
		{"turns.test.", []string{"192.0.2.2"}},
		{"turns.test.", []string{"192.0.2.1"}},
	} {
		got, err := r.LookupHost(t.Context(), c.name)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("LookupHost(%s) = %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	_, err := r.LookupHost(t.Context(), "none.test.")
	if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound {
		t.Errorf("LookupHost(none.test) = %v, want that there is no such name", err)
	}
	if n := s.Asked("turns.test", A); n != 3 {
		t.Errorf("Asked(turns.test) = %d, want 3", n)
	}
}

// FuzzReply: for any message, the reply is nil or an answer to the message.
func FuzzReply(f *testing.F) {
	f.Add("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01")
	f.Add("")
	f.Add(strings.Repeat("\x01", 20))
	s := &Server{zone: func(string, int) []string { return []string{"b", "::1", "127.0.0.1"}[1:] }, asked: map[question]int{}}
	f.Fuzz(func(t *testing.T, message string) {
		reply := s.reply([]byte(message))
		if reply != nil && (string(reply[:2]) != message[:2] || reply[2]&0x80 == 0) {
			t.Fatalf("reply(%q) = %q, want an answer to it", message, reply)
		}
	})
}
