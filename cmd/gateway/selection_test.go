package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2024, 10, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                              "",
		"2024-10-01":                    "2024-10-01T00:00:00.000",
		"2024-10-01T10:00:00":           "2024-10-01T10:00:00.000",
		"2024-10-01T10:00:00.125":       "2024-10-01T10:00:00.125",
		"2024-10-01T10:00:00Z":          "2024-10-01T10:00:00.000",
		"2024-10-01T10:00:00.125+09:00": "2024-10-01T01:00:00.125",
		"90s":                           "2024-10-01T11:58:30.000",
		"500ms":                         "2024-10-01T11:59:59.500",
		"2h":                            "2024-10-01T10:00:00.000",
		"1d":                            "2024-09-30T12:00:00.000",
	} {
		got, err := parseMoment("--since", text, now)
		if err != nil || strings.Trim(moment(got), "-") != want {
			t.Errorf("parseMoment(%q) = %s, %v, want %s", text, moment(got), err, want)
		}
	}
	for _, text := range []string{"2024", "0", "yesterday", "-2h", "1h30m", "2024-10-01 10:00", "2024-13-01", "10:00", "99999999999d", " 2h"} {
		got, err := parseMoment("--until", text, now)
		var usage usageError
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "--until must be a time such as ") {
			t.Errorf("parseMoment(%q) = %s, %v, want a usage error that names the flag", text, moment(got), err)
		}
	}
}

func TestSelection(t *testing.T) {
	now := time.Date(2024, 10, 1, 12, 0, 0, 0, time.UTC)
	s := selection{source: "shop", eventType: "order.created", timeFlags: timeFlags{since: "2h", until: "1h"}}
	f, err := s.parse(now)
	if err != nil || f.Source != "shop" || f.Type != "order.created" || f.Since != now.Add(-2*time.Hour) || f.Until != now.Add(-time.Hour) {
		t.Errorf("parse = %+v, %v", f, err)
	}
	for _, s := range []selection{{timeFlags: timeFlags{since: "1h", until: "2h"}}, {timeFlags: timeFlags{since: "1h", until: "1h"}}, {timeFlags: timeFlags{since: "x"}}, {timeFlags: timeFlags{until: "x"}}} {
		var usage usageError
		if f, err := s.parse(now); !errors.As(err, &usage) {
			t.Errorf("parse of %+v = %+v, %v, want a usage error", s, f, err)
		}
	}
}
