// Package telemetry shows the work of the gateway. It imports core.
//
// The idea to know: services state facts ([core.Fact]), once and after the commit, and all
// output is made from facts: observe.go makes log lines, package metrics numbers, package
// traces spans. Business code does not count, and logs only oddities of a single input.
//
// # Log lines
//
// Each fact is one line, with these fields; their names are the same everywhere and
// stable:
//
//	target                          the part of the program: intake, cron, worker, alert,
//	                                pull, workflow, store, config, manage, web, http, traces,
//	                                echo. Filters name it
//	event, job, source, type        of the event, and of the job it gave rise to
//	handler                         whose job it is; in its place queue of messages, lane of
//	                                alerts, and workflow of runs, with run, and step, its path
//	attempt, status, duration_ms    of an attempt: which one, the reply's, what it took
//	error, due                      why it failed, and when it is tried again
//	first                           the event that a duplicate repeats
//	jobs, messages, slots, rows     how many; first_slot and last_slot of a schedule's, and
//	                                whether there are more rows for the next pass
//	repeated                        how many more lines like this one were left out
//	epoch                           which life of a run
//	filter                          the configuration path of a filter that gave no answer
//	reason, client_ip, topic        of what was refused, and of subscriptions
//	why, doing, probe               of jobs given back, of what failed, of a breaker
//
// Normal operation is logged at info, failures with a later attempt at warn, failures that
// need an operator at error, and lines that may come in floods at debug. Of lines that
// requests from outside cause, the log has one a second for each source and reason, at any
// level: see limiter. Metrics are exact all the same, since they count the facts.
//
// Tokens and header values are never logged, nor the data of steps. Only the echo receiver
// logs payloads, which is its purpose.
package telemetry
