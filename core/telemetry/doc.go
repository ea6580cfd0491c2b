// Package telemetry makes what happens visible. It imports core.
//
// The idea to know: services state facts ([core.Fact]), once and after the
// commit, and everything that is shown is made of them here: observe.go turns
// facts into log lines. Business code neither counts nor logs.
//
// Field names are the same everywhere and stable: event, job, source, type,
// handler, attempt, status, error, duration_ms. Payloads, tokens and header
// values are never logged.
package telemetry
