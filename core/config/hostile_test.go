//go:build linux

package config

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// hostile are configurations that would keep a careless loader busy. size is how large they
// are, in bytes.
var hostile = map[string]func(size int) string{
	"variables":           func(n int) string { return "server: {host: \"" + repeat("${A:-x}", n) + "\"}" },
	"variables that lack": func(n int) string { return "server: {host: \"" + repeat("${A}", n) + "\"}" },
	"many that lack":      func(n int) string { return "server: {host: \"" + numbered("${A%d}", n) + "\"}" },
	"one open variable":   func(n int) string { return "server: {host: \"${A:-" + repeat("${A:-", n) + "\"}" },
	"unknown keys":        func(n int) string { return numbered("k%d: 1\n", n) },
	"short unknown keys":  func(n int) string { return "sources:\n  a:\n    type: event\n" + numbered("    typ%d: 1\n", n) },
	"one long key":        func(n int) string { return repeat("k", n) + ": 1" },
	"long keys":           func(n int) string { return numbered(repeat("k", 1000)+"%d: 1\n", n) },
	"the same key":        func(n int) string { return repeat("a: 1\n", n) },
	"sources":             func(n int) string { return "sources:\n" + numbered("  s%d: {}\n", n) },
	"good sources":        func(n int) string { return "sources:\n" + numbered("  s%d: {type: event}\n", n) },
	"wrong types":         func(n int) string { return "sources:\n" + numbered("  s%d: {type: evnt}\n", n) },
	"odd names":           func(n int) string { return "sources:\n" + numbered("  ?%d!: {type: event}\n", n) },
	"unknown sources": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers:\n" + numbered("  h%d: {source: b, url: x}\n", n)
	},
	"both": func(n int) string {
		return "sources:\n" + numbered("  s%d: {type: event}\n", n/2) + "handlers:\n" + numbered("  h%d: {source: t, url: u}\n", n/2)
	},
	"good handlers": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers:\n" + numbered("  h%d: {source: a, url: 'https://a/'}\n", n)
	},
	"many pairs": func(n int) string {
		return "sources:\n" + numbered("  s%d: {type: event}\n", n/3) + "handlers:\n" + numbered("  h%d: {source: s1, url: 'https://a/'}\n", n/3)
	},
	"filters": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', filter: '" + repeat("$.a == 1 and ", n) + "$.a == 1'}}"
	},
	"brackets in a filter": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', filter: '" + repeat("(", n) + "'}}"
	},
	"nots in a filter": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', filter: '" + repeat("not ", n) + "$.a == 1'}}"
	},
	"a template": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', transform: '[" + repeat("{{ $.a }},", n) + "1]'}}"
	},
	"brackets in templates": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', transform: '" + repeat("[", n) + "'}}"
	},
	"a path": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', idempotency_key: '$" + repeat(".a", n) + "'}}"
	},
	"brackets in a path": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', idempotency_key: '$" + repeat("[?(@", n) + "'}}"
	},
	"event types": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', events: [" + numbered("'a%d..',", n) + "]}}"
	},
	"headers": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', headers: {" + numbered("A%d: x,", n) + "}}}"
	},
	"bad headers": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', headers: {" + numbered("'A %d': x,", n) + "}}}"
	},
	"credentials": func(n int) string {
		return "sources: {a: {type: event}}\nhandlers: {h: {source: a, url: 'https://a/', headers: {" + numbered("A%d-Token: x,", n) + "}}}"
	},
	"secrets": func(n int) string {
		return "sources: {a: {type: webhook, verify: github, secret: [" + repeat("a,", n) + "]}}"
	},
	"networks": func(n int) string {
		return "sources: {a: {type: event, allowed_ips: [" + numbered("10.0.0.0/%d,", n) + "]}}"
	},
	"alerts": func(n int) string { return "alerts:\n" + numbered("- {url: 'https://a/%d', on: [dlq]}\n", n) },
	"chats": func(n int) string {
		return "alerts:\n" + numbered("- {url: 'https://a/%d', type: slack, on: [dlq]}\n", n)
	},
	"the same alert": func(n int) string { return "alerts:\n" + repeat("- {url: 'https://a/', on: [dlq]}\n", n) },
	"topics":         func(n int) string { return "sources: {a: {type: sns, topic_arns: [" + numbered("a%d,", n) + "]}}" },
	"a schema": func(n int) string {
		return "sources: {a: {type: event, schema: {type: object, properties: {" + numbered("a%d: {type: string},", n) + "}}}}"
	},
	"references": func(n int) string {
		return "sources: {a: {type: event, schema: {$ref: '#/$defs/a0', $defs: {" + chain(n) + "}}}}"
	},
	"a schema that nests": func(n int) string {
		return "sources: {a: {type: event, schema: " + repeat("{properties: {a: ", n) + "{}" + repeat("}}", n*2/17) + "}}"
	},
	"patterns": func(n int) string {
		return "sources: {a: {type: event, schema: {properties: {" + numbered("a%d: {pattern: '(a{1,9}){1,9}'},", n) + "}}}}"
	},
	"one pattern": func(n int) string {
		return "sources: {a: {type: event, schema: {pattern: '" + repeat("(a|b)*", n) + "'}}}"
	},
	"an enum":        func(n int) string { return "sources: {a: {type: event, schema: {enum: [" + numbered("%d,", n) + "]}}}" },
	"steps":          func(n int) string { return flow(numbered("{name: s%d, url: 'https://a/'},", n)) },
	"the same steps": func(n int) string { return flow(repeat("{name: s, url: 'https://a/'},", n)) },
	"choices": func(n int) string {
		return flow("{name: c, type: choice, choices: [" + numbered("{when: '$.a == %d', goto: c},", n) + "]}")
	},
	"choices to nowhere": func(n int) string {
		return flow(numbered("{name: c%d, type: choice, choices: [{when: '$.a', goto: x}]},", n))
	},
	"rounds": func(n int) string {
		return flow(numbered("{name: c%d, type: choice, choices: [{when: '$.a == 1', goto: c0}]},", n))
	},
	"steps that refer": func(n int) string { return flow(numbered("{name: s%d, url: 'https://a/', input: '$.steps.s0'},", n)) },
	"branches": func(n int) string {
		return flow("{name: p, type: parallel, branches: [" + numbered("{name: b%d, url: 'https://a/'},", n) + "]}")
	},
	"branches in branches": func(n int) string {
		return flow(repeat("{name: p, type: parallel, branches: [{name: a, steps: [", n) + repeat("]}]}", n/12))
	},
	"params": func(n int) string {
		return "sources: {a: {type: event}}\nworkflows: {w: {source: a, params: [" + numbered("{name: p%d},", n) + "], steps: [{name: s, url: 'https://a/'}]}}"
	},
	"lists":        func(n int) string { return "a: " + repeat("[", n) },
	"closed lists": func(n int) string { return "a: " + repeat("[", n/2) + repeat("]", n/2) },
	"mappings":     func(n int) string { return "a: " + repeat("{a: ", n) },
	"indentation":  func(n int) string { return staircase(n) },
	"dashes":       func(n int) string { return repeat("- ", n) },
	"questions":    func(n int) string { return repeat("? ", n) },
	"empty items":  func(n int) string { return "a: [" + repeat(",", n) },
	"anchors":      func(n int) string { return "a:\n" + numbered("  b%[1]d: &c%[1]d 1\n", n) },
	"aliases":      func(n int) string { return "a: &a [x, x]\nb: [" + repeat("*a,", n) + "]" },
	"aliases of large": func(n int) string {
		return "a: &a {" + numbered("k%d: 1,", n/2) + "}\nsources: {" + numbered("s%d: *a,", n/2) + "}"
	},
	"an alias bomb": func(n int) string { return bomb(n, "[", "]", "%s,%s,%s,%s,%s,%s,%s,%s,%s") },
	"merges": func(n int) string {
		return "a: &a {" + numbered("k%d: 1,", n/2) + "}\nb:\n" + repeat("  <<: *a\n", n/2)
	},
	"lists of merges": func(n int) string {
		return "a: &a {" + numbered("k%d: 1,", n/2) + "}\nb: {<<: [" + repeat("*a,", n/2) + "]}"
	},
	"tags":                func(n int) string { return "a: [" + repeat("!x 1,", n) + "]" },
	"one line":            func(n int) string { return "a: " + repeat("x", n) },
	"comments":            func(n int) string { return repeat("# x\n", n) },
	"blank lines":         func(n int) string { return repeat("\n", n) + "a: 1" },
	"tabs":                func(n int) string { return "a:\n" + repeat("\t", n) + "b: 1" },
	"quotes":              func(n int) string { return "a: \"" + repeat("\\x41", n) + "\"" },
	"an open quote":       func(n int) string { return "a: \"" + repeat("\n b", n) },
	"a block":             func(n int) string { return "a: |\n" + repeat("  x\n", n) },
	"documents":           func(n int) string { return repeat("---\na: 1\n", n) },
	"directives":          func(n int) string { return numbered("%%TAG !a%d! tag:x\n", n) + "---\na: 1" },
	"durations":           func(n int) string { return "delivery: {timeout: " + repeat("9", n) + "}" },
	"a long host":         func(n int) string { return "server: {host: " + repeat("a.", n) + "}" },
	"a long url":          func(n int) string { return "server: {public_url: 'https://a/" + repeat("%2F", n) + "'}" },
	"a long database url": func(n int) string { return "database: {driver: postgres, url: 'postgres://u:" + repeat("a@", n) + "'}" },
	"database passwords":  func(n int) string { return "database: {driver: postgres, url: '" + repeat("password=", n) + "'}" },
	"a long zone": func(n int) string {
		return "sources: {a: {type: cron, schedule: '* * * * *', timezone: '" + repeat("+", n) + "'}}"
	},
	"a long schedule": func(n int) string { return "sources: {a: {type: cron, schedule: '" + repeat("1,", n) + "1 * * * *'}}" },
	"many schedules":  func(n int) string { return "sources:\n" + numbered("  s%d: {type: cron, schedule: '1 2 30 2 *'}\n", n) },
	"many zones": func(n int) string {
		return "sources:\n" + numbered("  s%d: {type: cron, schedule: '1 2 3 4 *', timezone: Europe/Berlin}\n", n)
	},
	"bytes": func(n int) string { return repeat("\xff\x00", n) },
}

func repeat(s string, size int) string { return strings.Repeat(s, max(1, size/len(s))) }

// numbered repeats a text; each repeat has its number in it.
func numbered(format string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func flow(steps string) string {
	return "sources: {a: {type: event}}\nworkflows: {w: {source: a, steps: [" + steps + "]}}"
}

// chain are definitions; each one refers to the next.
func chain(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "a%d: {$ref: '#/$defs/a%d'},", i, i+1)
	}
	return b.String() + "end: {}"
}

func staircase(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// bomb are anchors; each one holds the one before several times.
func bomb(size int, open, end, many string) string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i < 100 && b.Len() < size; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "a%d: &a%d %s%s%s\n", i, i, open, strings.ReplaceAll(many, "%s", alias), end)
	}
	return b.String()
}

// spent is the CPU time that this thread has used. Elapsed time on a busy machine would say
// nothing, and the time of the process has the garbage collector's, which grows with the load.
func spent(t *testing.T) time.Duration {
	const ofThread = 1 // RUSAGE_THREAD, which package syscall lacks
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loadHostile reads a text as a remote configuration with an equal overlay, and collects every
// error and warning. It returns the CPU time and the length of the errors.
func loadHostile(t *testing.T, text string) (took time.Duration, said int) {
	t.Helper()
	file := &fstest.MapFile{Data: []byte(text)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := spent(t)
	c, err := Load(Options{
		FS: fstest.MapFS{"gateway.yaml": file, "gateway.local.yaml": file}, Path: "gateway.yaml", Env: "local",
		Remote: true, Lookup: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		said = len(err.Error())
	} else {
		c.Warnings()
		c.Forbids(c)
		c.Same(c)
	}
	return spent(t) - began, said
}

// No text keeps the loader busy for long or makes its errors long: a remote configuration is
// read while the gateway serves. 1 MiB of each text takes less than 1 s of CPU time on a
// processor of 2024. The test does not measure that, since other machines are slower: eight
// times the text may take at most thirty times as long.
func TestHostileConfigurations(t *testing.T) {
	const size, little = MaxFile / 5, 400 * time.Millisecond
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			large, said := loadHostile(t, make(size))
			if said > 1<<20 {
				t.Errorf("%d bytes of errors, want less than 1 MiB", said)
			}
			// Other programs may have slowed the first one down.
			for n := 0; large >= little && n < 2; n++ {
				again, _ := loadHostile(t, make(size))
				large = min(large, again)
			}
			if large < little {
				return
			}
			if small, _ := loadHostile(t, make(size/8)); large > 30*small {
				t.Errorf("%d bytes take %v and an eighth of them %v: that is not in proportion", size, large, small)
			}
		})
	}
}

// Beyond the first thousand problems, the report only counts.
func TestManyProblems(t *testing.T) {
	_, err := Load(Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(numbered("k%d: 1\n", 20_000))}}, Path: "gateway.yaml"})
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != maxProblems+1 {
		t.Fatalf("Load = %d problems, want %d and how many more", len(problems), maxProblems)
	}
	if last := problems[maxProblems].String(); !strings.HasPrefix(last, "gateway.yaml: has ") || !strings.HasSuffix(last, " more problems, which are reported once some of these are fixed") {
		t.Errorf("the last problem is %q", last)
	}
}
