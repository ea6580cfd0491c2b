package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// printStory writes a run with its steps and its history as one document, and holds one page
// of it in memory. The document is equal to printJSON's of the whole run.
func (a *app) printStory(ctx context.Context, runs runService, first manage.Inspected) error {
	if first.Next.Zero() {
		return a.PrintJSON(wire.StoryOfRun(first))
	}
	// The fields before the lists are written as a part of a whole document with empty lists,
	// which is cut before the first list. So they have the same form, indented or not.
	run, err := terminal.JSONElement(wire.StoryOfRun(manage.Inspected{Run: first.Run}), "")
	if err != nil {
		return err
	}
	fmt.Fprint(a.stdout, run[:max(strings.LastIndex(run, "[],\n  \"history\": "), strings.LastIndex(run, `[],"history":`))])
	// Pages bring all steps first and the history after them, in the order of the two lists in
	// the document.
	l, second := a.JSONLists(), false
	for page, err := range pagesOf(ctx, runs, first) {
		if err != nil {
			return err
		}
		for _, s := range page.Steps {
			if err := l.Add(wire.StepOf(s)); err != nil {
				return err
			}
		}
		for _, e := range page.History {
			if !second { // all steps are written
				l.Next("history")
				second = true
			}
			if err := l.Add(wire.EntryOf(e)); err != nil {
				return err
			}
		}
	}
	if !second {
		l.Next("history")
	}
	l.End()
	return nil
}
