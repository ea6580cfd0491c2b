package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// printStory writes a run with its steps and its history as one document, and holds one page
// of it in memory. The document is equal to printJSON's of the whole run.
func (a *app) printStory(ctx context.Context, runs runService, first manage.Inspected) error {
	if first.Next.Zero() {
		return a.printJSON(wire.StoryOfRun(first))
	}
	run, err := element(wire.StoryOfRun(manage.Inspected{Run: first.Run}), "")
	if err != nil {
		return err
	}
	fmt.Fprint(a.stdout, run[:max(strings.LastIndex(run, "[],\n  \"history\": "), strings.LastIndex(run, `[],"history":`))])
	l := list{a: a}
	for page, err := range pagesOf(ctx, runs, first) {
		if err != nil {
			return err
		}
		for _, s := range page.Steps {
			if err := l.add(wire.StepOf(s)); err != nil {
				return err
			}
		}
		for _, e := range page.History {
			if !l.second { // all steps are written
				l.next("history")
			}
			if err := l.add(wire.EntryOf(e)); err != nil {
				return err
			}
		}
	}
	if !l.second {
		l.next("history")
	}
	l.end()
	a.printf("\n}")
	return nil
}

// A list writes the elements of two fields of an object, one after the other.
type list struct {
	a      *app
	n      int // elements of this field
	second bool
}

func (l *list) add(v any) error {
	text, err := element(v, "    ")
	if err != nil {
		return err
	}
	before := ",\n    "
	if l.n == 0 {
		before = "[\n    "
	}
	l.n++
	_, err = fmt.Fprint(l.a.stdout, before, text)
	return err
}

// next ends the first field and begins the second.
func (l *list) next(name string) {
	l.end()
	fmt.Fprintf(l.a.stdout, ",\n  %q: ", name)
	l.n, l.second = 0, true
}

func (l *list) end() {
	if l.n == 0 {
		fmt.Fprint(l.a.stdout, "[]")
		return
	}
	fmt.Fprint(l.a.stdout, "\n  ]")
}

// element is a value as text in the form of printJSON, at an indent.
func element(v any, indent string) (string, error) {
	var b, spread bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("write as JSON: %w", err)
	}
	text := bytes.TrimSpace(b.Bytes())
	if depth(text)+len(indent)/2 <= maxIndent && json.Indent(&spread, text, indent, "  ") == nil {
		text = spread.Bytes()
	}
	return string(visibleJSON(text)), nil
}
