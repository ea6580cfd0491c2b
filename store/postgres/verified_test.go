package postgres

import (
	"strings"
	"testing"
)

func TestUnverified(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:p@db.example.com/d":                                            "unencrypted", // sslmode prefer
		"postgres://u:p@db.example.com/d?sslmode=disable":                            "unencrypted",
		"postgres://u:p@db.example.com/d?sslmode=allow":                              "unencrypted",
		"postgres://u:p@10.0.0.1/d?sslmode=require":                                  "not verified",
		"postgres://u:p@db.example.com/d?sslmode=verify-ca":                          "",
		"postgres://u:p@db.example.com/d?sslmode=verify-full":                        "",
		"postgres://u:p@localhost,db.example.com/d?sslmode=require":                  "not verified",
		"host=db.example.com user=u password=p dbname=d sslmode=require":             "not verified",
		"postgres://u:p@localhost/d":                                                 "",
		"postgres://u:p@[::1]/d?sslmode=disable":                                     "",
		"postgres://u:p@127.0.0.1/d?sslmode=require":                                 "",
		"postgres:///d?host=/var/run/postgresql":                                     "",
		"postgres://u:p@db.example.com/d?sslmode=some":                               "", // the error comes when the database is opened
		"postgres://u:p@db.example.com:5432/gateway?sslmode=verify-full&pool_size=1": "",
	} {
		got := Unverified(url)
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, ":p@") {
			t.Errorf("Unverified(%s) = %q, want %q", url, got, want)
		}
	}
}
