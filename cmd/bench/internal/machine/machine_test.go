package machine

import (
	"testing"
	"time"
)

func TestMountIsTheLongestAbove(t *testing.T) {
	const info = `22 1 0:21 / / rw,relatime - ext4 /dev/vda rw
23 22 0:22 / /data rw shared:1 - xfs /dev/vdb rw
24 22 0:23 / /database rw - tmpfs tmpfs rw
25 23 0:24 / /data/fast rw - tmpfs tmpfs rw
`
	cases := map[string]string{
		"/tmp":        "ext4 (/dev/vda on /)",
		"/data":       "xfs (/dev/vdb on /data)",
		"/data/x/y":   "xfs (/dev/vdb on /data)",
		"/data/fast":  "tmpfs (tmpfs on /data/fast)",
		"/database/x": "tmpfs (tmpfs on /database)",
		"/datax":      "ext4 (/dev/vda on /)",
	}
	for dir, want := range cases {
		if got := mount(info, dir); got != want {
			t.Errorf("mount(%q) = %q, want %q", dir, got, want)
		}
	}
	if got := mount("", "/"); got != "unknown" {
		t.Errorf("mount of nothing = %q", got)
	}
}

func TestUsage(t *testing.T) {
	got, err := usage("cpu  100 10 50 1000 20 3 7 5 0 0\ncpu0 1 2 3\n")
	want := CPU{Busy: 170 * tick, Steal: 5 * tick, Total: 1195 * tick}
	if got != want || err != nil {
		t.Errorf("usage() = %+v, %v, want %+v", got, err, want)
	}
	if d := got.Since(CPU{Busy: 70 * tick}); d.Busy != time.Second {
		t.Errorf("Since = %v, want 1s", d.Busy)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu a b c d e f g h"} {
		if _, err := usage(bad); err == nil {
			t.Errorf("usage(%q) = nil, want an error", bad)
		}
	}
}

func TestFirstField(t *testing.T) {
	const info = "processor\t: 0\nmodel name\t: Fast CPU @ 2 GHz\nprocessor\t: 1\n"
	if got := firstField(info, "model name", "?"); got != "Fast CPU @ 2 GHz" {
		t.Errorf("firstField = %q", got)
	}
	if got := firstField(info, "flags", "?"); got != "?" {
		t.Errorf("firstField of none = %q", got)
	}
}
