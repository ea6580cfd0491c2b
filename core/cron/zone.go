package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // about 450 KB: machines without zones, such as an empty image, have them too

	"github.com/eventgateway/gateway/core/once"
)

// offset matches a fixed offset. The hours are checked later, so that 15 gets a message of its
// own.
var offset = once.Regexp(`^([+-])([0-9]{2}):([0-5][0-9])$`)

// zoneRule describes a valid zone.
const zoneRule = "must be UTC, a zone such as Europe/Berlin, or a fixed offset such as +09:00"

// ParseZone reads "UTC", the name of a zone of the IANA database, or a fixed offset "+HH:MM" or
// "-HH:MM" of at most 14 hours.
func ParseZone(zone string) (*time.Location, error) {
	switch {
	case zone == "UTC":
		return time.UTC, nil
	case zone == "" || zone == "Local": // the machine's own: it changes with the machine
		return nil, errors.New(zoneRule)
	case strings.ContainsAny(zone[:1], "+-0123456789"):
		return fixed(zone)
	}
	loc, err := time.LoadLocation(zone)
	if err == nil {
		return loc, nil
	}
	if near := nearZone(zone); near != "" {
		return nil, fmt.Errorf("%s; did you mean %q?", zoneRule, near)
	}
	return nil, errors.New(zoneRule + "; the database of zones has none of this name")
}

// fixed reads an offset.
func fixed(zone string) (*time.Location, error) {
	m := offset().FindStringSubmatch(zone)
	if m == nil {
		return nil, errors.New(zoneRule)
	}
	hours, _ := strconv.Atoi(m[2])
	minutes, _ := strconv.Atoi(m[3])
	seconds := hours*3600 + minutes*60
	if seconds > 14*3600 {
		return nil, errors.New("must be UTC, a zone such as Europe/Berlin, or a fixed offset of at most 14 hours, such as +09:00")
	}
	if m[1] == "-" {
		seconds = -seconds
	}
	return time.FixedZone(zone, seconds), nil
}

// regions are the first parts of the names of zones.
var regions = []string{"Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}

// longestZone bounds a name that is worth guessing about.
const longestZone = 64

// nearZone returns a zone whose name was perhaps meant: in another case, with blanks, or a
// city without its region. It is empty if there is none.
func nearZone(name string) string {
	if len(name) > longestZone {
		return ""
	}
	proper := properName(name)
	candidates := []string{proper, strings.ToUpper(name)}
	for _, region := range regions {
		candidates = append(candidates, region+"/"+proper)
	}
	for _, c := range candidates {
		if _, err := time.LoadLocation(c); err == nil && c != "" && c != "Local" {
			return c
		}
	}
	return ""
}

// properName returns a name in the usual spelling of the database: each word with a
// capital, words joined by _.
func properName(name string) string {
	letters := []byte(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_")))
	for i, c := range letters {
		if 'a' <= c && c <= 'z' && (i == 0 || letters[i-1] == '/' || letters[i-1] == '_' || letters[i-1] == '-') {
			letters[i] = c - 'a' + 'A'
		}
	}
	return string(letters)
}
