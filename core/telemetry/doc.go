// Package telemetry turns the facts of the services into log lines, metrics and traces. It
// imports core.
//
// The one idea to know: a service states each fact ([core.Fact]) once, after the commit.
// Everything that an operator sees is made of facts: observe.go makes log lines, package
// metrics makes numbers, package traces makes spans. The services themselves count nothing.
// They log only oddities of a single input.
//
// # Log lines
//
// Each fact makes one line. The fields have these names in every line, and the names are
// stable:
//
//	target                          the part of the program: intake, cron, worker, alert,
//	                                pull, workflow, store, config, manage, web, http, traces,
//	                                echo. Filters use this name
//	event, job, source, type        the event, and the job made for it
//	handler                         the consumer of the job. A message has queue instead, an
//	                                alert has lane, and a run has workflow, run and step
//	                                (the path of the step)
//	attempt, status, duration_ms    the attempt's number, its HTTP status, and its duration
//	error, due                      why the attempt failed, and the time of the next one
//	first                           the event that a duplicate repeats
//	jobs, messages, slots, rows     counts. first_slot and last_slot go with slots; more says
//	                                whether rows are left for the next pass
//	repeated                        the number of similar lines that were left out
//	epoch                           the epoch of a run: 1, and 1 more for each redrive
//	filter                          the configuration path of a filter that failed
//	reason, client_ip, topic        of a refused request or connection, and of a subscription
//	why, doing, probe               why jobs were released, the action that failed, and the
//	                                time of a breaker's next probe
//
// The levels: info for normal operation, warn for failures that are tried again, error for
// failures that need a person, and debug for lines that may come in floods. Lines caused by
// requests from outside are limited, at every level: the log has one line a second for each
// source and reason. See limiter. Metrics stay exact, since they count the facts.
//
// Tokens, header values, and the inputs and outputs of steps are never logged. Only the echo
// receiver logs payloads, since showing them is its purpose.
package telemetry
