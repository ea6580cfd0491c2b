// Package telemetry makes what happens visible. It imports core.
//
// The idea to know: services state facts ([core.Fact]), once and after the
// commit, and everything that is shown is made of them here: observe.go turns
// facts into log lines. Business code does not count, and logs only what is odd
// about a single input.
//
// Field names are the same everywhere and stable: event, job, source, type,
// handler, attempt, status, error, duration_ms, and in the place of handler queue of
// messages, lane of alerts, and workflow of runs, with run and step, the step's path.
// Tokens and header values are never logged, nor what steps receive and pass on;
// payloads only by the echo receiver, whose purpose that is.
package telemetry
