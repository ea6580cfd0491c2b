package remote

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Lines are the lines of a server.
type Lines struct{ c *Client }

// Lines returns the lines of a server.
func (c *Client) Lines() Lines { return Lines{c} }

// List reads a page of the lines of a lane, by key: GET /api/lines.
func (l Lines) List(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error) {
	var page wire.Lines
	err := l.c.get(ctx, &page, parameters("consumer", lane.Consumer(), "after", after, "limit", atMost(limit)), "lines")
	return page.Core(), err
}

// Inspect reads a line with its jobs: GET /api/lines/inspect.
func (l Lines) Inspect(ctx context.Context, lane core.Lane, key string) (manage.LineStory, error) {
	var story wire.LineStory
	err := l.c.get(ctx, &story, parameters("consumer", lane.Consumer(), "key", key), "lines", "inspect")
	return story.Core(), err
}

// Skip lets the line go on that a dead job stops: POST /api/jobs/{id}/skip.
func (l Lines) Skip(ctx context.Context, id core.ID) error {
	var reply wire.Skipped
	return l.c.post(ctx, &reply, nil, "jobs", string(id), "skip")
}
