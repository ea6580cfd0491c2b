// Package config reads gateway.yaml: one typed struct tree, Config, that is complete and
// checked once Load returns.
//
// The idea to know is the pipeline, in the order users are promised:
//
//	.env.<name>     fills in variables that the environment lacks
//	gateway.yaml    is parsed into a tree in which every node knows its file, line and column
//	overlay         gateway.<name>.yaml is merged in: mappings merge, null removes, everything else replaces
//	expand          ${VAR} and ${VAR:-default}, in values and after parsing, so no value can add YAML
//	decode          one strict walk over the Go types: unknown keys, wrong types, ranges, choices
//	resolve         fields that depend on another field: effective retry, timeout and signing secret of a handler
//	validate        parses filters, paths, templates and schedules; makes the checks that concern more than one field
//
// Only a file that cannot be read or parsed ends Load at the first problem. All other problems
// are collected, each with its position and full path, and Load fails with the whole list. The
// walk replaces the decoding of yaml.v3, whose errors name Go types and which is not strict
// below custom types. The bounds and choices of a field stand in its struct tag, for the check
// and the message alike. In code, defaults stand in default.go alone.
//
// The struct tags: yaml is the key; required:"" refuses absence; filled:"" refuses an empty
// value or list, unless null is written out; range:"lo hi" bounds a number or duration; oneof:"a b"
// lists choices; also:"x=a" lists other spellings, normalised to the documented one; alias is a
// second name of the key; single:"" lets one mapping stand for a list of one; off:"" lets the
// word off stand for a mapping; null:"keep" reads an explicit null as the text "null";
// schema:"" reads a JSON Schema, in place or from a file.
//
// Definition writes one workflow of the merged tree out again, unexpanded, for runs to follow;
// ParseDefinition sends that through the same pipeline. So a run in flight never sees a change
// of the file, and the store never sees a variable.
//
// A configuration from elsewhere (Options.Remote) goes through the same pipeline, but without
// .env file, without schemas in files of their own, and with few variables. core/config/remote
// fetches it. allow.go has the settings that such a configuration may contain only with the
// machine's permission. change.go has the settings that it may not change.
//
// Texts with a grammar of their own are parsed here, once, and kept beside their text: see
// Parsed. The services take the parsed values.
//
// Rules writes the part that decides about events, expanded and without secrets, for another
// process; ParseRules reads it.
//
// Warnings returns settings that are valid but doubtful. networks.go compares lists of networks
// by their addresses. published.go has the secrets that were published as samples.
//
// The package is pure: files come through io/fs, the environment through a function. It may
// import core, core/once, core/order, core/endpoint, core/cron, core/expr, core/sns, core/verify, the
// YAML and .env parsers and an edit distance; it imports no os, net/http, database/sql or log.
package config
