package mysql

import (
	"strings"
	"testing"
)

func TestUnverified(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://u:p@db.example.com/d":                      "not encrypted",
		"mysql://u:p@db.example.com:3307/d?tls=false":       "not encrypted",
		"mysql://u:p@db.example.com/d?tls=preferred":        "may be unencrypted",
		"mysql://u:p@db.example.com/d?tls=skip-verify":      "not verified",
		"mariadb://u:p@[2001:db8::1]:3306/d":                "2001:db8::1 is not encrypted",
		"u:p@tcp(db.example.com:3306)/d":                    "not encrypted",
		"mysql://u:p@db.example.com/d?tls=true":             "",
		"u:p@tcp(db.example.com:3306)/d?tls=true":           "",
		"mysql://u:p@127.0.0.1/d":                           "",
		"mysql://u:p@localhost:3306/d":                      "",
		"mysql://u@[::1]/d":                                 "",
		"mysql://root@unix(/run/mysqld/mysqld.sock)/d":      "",
		"mysql://u:p@db.example.com/d?tls=somebody":         "", // the error comes when the database is opened
		"mysql://u:p@db.example.com/d?timeout=1s&tls=true&": "",
	} {
		got := Unverified(url)
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, ":p@") {
			t.Errorf("Unverified(%s) = %q, want %q", url, got, want)
		}
	}
}
