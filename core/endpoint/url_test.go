package endpoint

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	for _, raw := range []string{
		"http://example.com", "https://example.com/", "HTTPS://Example.COM/x?y=z#f", "http://example.com:8080/a%20b",
		"http://example.com./", "http://localhost:3000", "http://web_1:80/", "http://a", "http://xn--mnchen-3ya.de/",
		"http://1.2.3.4", "http://10.0.0.1:65535/", "http://[::1]:8080/", "http://[2001:db8::1]", "http://[::ffff:10.0.0.1]/",
		"http://123.example.com", "http://0x7f.example.com", "http://1e100.net", "http://example.com:1", "http://0xyz", "http://3com",
	} {
		if err := CheckURL(raw); err != nil {
			t.Errorf("CheckURL(%q) = %v, want nil", raw, err)
		}
	}
	for _, raw := range []string{
		"", "example.com", "/path", "//example.com/", "ftp://example.com", "file:///etc/passwd", "gopher://x", "unix:/run/x",
		"http:", "http:/", "http://", "http:///path", "http:example.com", "http://:80", "http://.", "http://..", "http://a..b", "http://a.b..",
		"http://user@example.com", "http://user:s3cret@example.com", "http://@example.com", "http://:@example.com",
		"http://example.com:0", "http://example.com:65536", "http://example.com:", "http://example.com:-1", "http://example.com:http",
		"http://2130706433", "http://0", "http://0x7f000001", "http://0X7F000001", "http://0x", "http://017700000001", "http://0177.0.0.1",
		"http://127.1", "http://127.0.1", "http://127.0.0.1.", "http://1.2.3.4.5", "http://256.0.0.1", "http://0x7f.0.0.1", "http://127.0.0.0x1",
		"http://01.02.03.04", "http://1.2.3.04", "http://foo.0x4", "http://foo.09", "http://foo.1.", "http://00000000000000000000177.1",
		"http://[::1%25lo]/", "http://[::1%lo]/", "http://[fe80::1%25eth0]:80", "http://[127.0.0.1]/", "http://[localhost]", "http://[example.com]", "http://[::1", "http://::1/", "http://[]",
		"http://exa mple.com", "http://exa\tmple.com", "http://example.com\r\nHost: x", "http://example.com\x00", "http://ex%61mple.com",
		"http://münchen.de", "http://１２７.0.0.1", "http://127。0。0。1", "http://xn--", "http://xn--localhost-", "http://-a.com", "http://a-.com",
		"http://a,b", "http://a;b", "http://a\\b", "http://a/\x7f", "http://$HOST/", "http://{host}/",
		"http://" + strings.Repeat("a", 64) + ".com", "http://" + strings.Repeat("a.", 127) + "a.com",
	} {
		err := CheckURL(raw)
		if err == nil {
			t.Errorf("CheckURL(%q) = nil, want an error", raw)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("CheckURL(%q) = %v, which tells a secret", raw, err)
		}
	}
}

// FuzzCheckURL: the host of a URL that passes is an address in its usual form or
// cannot be taken for one.
func FuzzCheckURL(f *testing.F) {
	for _, raw := range []string{"http://example.com:80/x", "http://[::1]", "http://127.0.0.1", "http://0x7f.1", "https://a_b.c./"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if CheckURL(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.User != nil || u.Hostname() == "" {
			t.Fatalf("CheckURL(%q) passes", raw)
		}
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			return
		}
		labels := strings.Split(strings.TrimSuffix(u.Hostname(), "."), ".")
		if last := labels[len(labels)-1]; numberLabel().MatchString(last) {
			t.Fatalf("CheckURL(%q) passes", raw)
		}
	})
}

func TestCheckHeader(t *testing.T) {
	for _, name := range reserved {
		for _, n := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if CheckHeader(n, "x") == nil {
				t.Errorf("CheckHeader(%q) = nil, want an error", n)
			}
		}
	}
	for _, c := range []struct{ name, value string }{
		{"", "x"}, {"a b", "x"}, {"a:", "x"}, {"é", "x"}, {"a\r\nb", "x"}, {"(", "x"}, {"a", "s3cret\r\nb: c"}, {"a", "s3cret\n"}, {"a", "s3cret\x00"}, {"a", "s3cret\x7f"},
	} {
		if err := CheckHeader(c.name, c.value); err == nil {
			t.Errorf("CheckHeader(%q, %q) = nil, want an error", c.name, c.value)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("CheckHeader(%q, %q) = %v, which tells the value", c.name, c.value, err)
		}
	}
	for _, c := range []struct{ name, value string }{{"x", ""}, {"X-Api-Key", "a\tb c"}, {"x_y.z~", "é"}, {"authorization", "Bearer x"}} {
		if err := CheckHeader(c.name, c.value); err != nil {
			t.Errorf("CheckHeader(%q, %q) = %v, want nil", c.name, c.value, err)
		}
	}
}
