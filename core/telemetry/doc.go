// Package telemetry makes what happens visible. It imports core.
//
// The idea to know: services state facts ([core.Fact]), once and after the
// commit, and everything that is shown is made of them: observe.go turns facts into
// log lines, package metrics into numbers, package traces into spans. Business code does
// not count, and logs only what is odd about a single input.
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
//	filter                          where the configuration has a filter that gave no answer
//	reason, client_ip, topic        of what was refused, and of subscriptions
//	why, doing, probe               of jobs given back, of what failed, of a breaker
//
// What went as it should is told at info, what will be tried again at warn, what needs a
// person at error, and what may come in floods at debug. Of lines that requests from
// outside cause there is one a second for each source and reason, whatever the level:
// see limiter. Numbers are exact all the same, as they are made of the facts.
//
// Tokens and header values are never logged, nor what steps receive and pass on;
// payloads only by the echo receiver, whose purpose that is.
package telemetry
