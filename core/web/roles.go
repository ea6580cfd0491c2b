package web

import "github.com/eventgateway/gateway/core"

// roles has the role that each route of the API needs. Every check of a token reads it, so a
// route that is missing here is closed. Tests hold it to the router and to openapi.yaml.
//
// The consumers of a queue may have the queue's own key in place of a token.
var roles = map[Route]core.Role{
	{"POST", "/events/{event_type}"}:          core.RoleSend,
	{"POST", "/events/{source}/{event_type}"}: core.RoleSend,

	{"GET", "/api/events"}:                           core.RoleRead,
	{"GET", "/api/events/{id}"}:                      core.RoleRead,
	{"GET", "/api/events/{id}/jobs"}:                 core.RoleRead,
	{"GET", "/api/export/events"}:                    core.RoleRead,
	{"GET", "/api/jobs"}:                             core.RoleRead,
	{"GET", "/api/jobs/errors"}:                      core.RoleRead,
	{"GET", "/api/jobs/{id}"}:                        core.RoleRead,
	{"GET", "/api/jobs/{id}/attempts"}:               core.RoleRead,
	{"GET", "/api/jobs/{id}/attempts/{number}/body"}: core.RoleRead,
	{"GET", "/api/jobs/{id}/attempts/{number}/curl"}: core.RoleRead,
	{"GET", "/api/lines"}:                            core.RoleRead,
	{"GET", "/api/lines/inspect"}:                    core.RoleRead,
	{"GET", "/api/holds"}:                            core.RoleRead,
	{"GET", "/api/operations"}:                       core.RoleRead,
	{"GET", "/api/operations/{id}"}:                  core.RoleRead,
	{"GET", "/api/queues"}:                           core.RoleRead,
	{"GET", "/api/queues/{name}/peek"}:               core.RoleRead,
	{"GET", "/api/queues/{name}/dlq"}:                core.RoleRead,
	{"GET", "/api/workflow-runs"}:                    core.RoleRead,
	{"GET", "/api/workflow-runs/{id}"}:               core.RoleRead,
	{"GET", "/api/workflow-runs/{id}/graph"}:         core.RoleRead,
	{"GET", "/api/workflow-runs/{id}/step"}:          core.RoleRead,
	{"GET", "/api/series"}:                           core.RoleRead,
	{"GET", "/api/stats"}:                            core.RoleRead,
	{"GET", "/api/config"}:                           core.RoleRead, // without secrets
	{"GET", "/api/tail"}:                             core.RoleRead,
	{"GET", "/api/topology"}:                         core.RoleRead,
	{"GET", "/openapi.json"}:                         core.RoleRead,

	// Nothing is lost by these: a canceled job can be retried, and a canceled run redriven.
	{"POST", "/api/events/{id}/cancel"}:            core.RoleOperate,
	{"POST", "/api/events/{id}/replay"}:            core.RoleOperate,
	{"POST", "/api/events/replay"}:                 core.RoleOperate,
	{"POST", "/api/jobs/{id}/retry"}:               core.RoleOperate,
	{"POST", "/api/jobs/{id}/skip"}:                core.RoleOperate,
	{"POST", "/api/jobs/retry"}:                    core.RoleOperate,
	{"POST", "/api/handlers/{name}/breaker/reset"}: core.RoleOperate,
	{"POST", "/api/operations"}:                    core.RoleOperate,
	{"POST", "/api/operations/{id}/cancel"}:        core.RoleOperate,
	{"POST", "/api/holds"}:                         core.RoleOperate,
	{"DELETE", "/api/holds"}:                       core.RoleOperate,
	{"POST", "/api/schedules/{source}/fire"}:       core.RoleOperate,
	{"POST", "/api/queues/{name}/retry"}:           core.RoleOperate,
	{"POST", "/api/workflow-runs/{id}/redrive"}:    core.RoleOperate,
	{"POST", "/api/workflow-runs/{id}/cancel"}:     core.RoleOperate,

	// Consumers. To receive is to take: the message is invisible for others.
	{"GET", "/api/queues/{name}/messages"}: core.RoleOperate,
	{"POST", "/api/queues/{name}/ack"}:     core.RoleOperate,
	{"POST", "/api/queues/{name}/nack"}:    core.RoleOperate,
	{"POST", "/api/queues/{name}/extend"}:  core.RoleOperate,

	{"POST", "/api/queues/{name}/drain"}: core.RoleAdmin, // deletes

	{"GET", "/api/audit"}: core.RoleAdmin, // names people and their addresses
}
