// Package infra holds what a gateway is run with, each in a folder of its own:
//
//	systemd/     a unit, its variables, what the packages run when they are installed
//	docker/      the image
//	compose/     a gateway on SQLite, PostgreSQL or MySQL, and beside it what watches it
//	proxy/       TLS in front of it, with Caddy or nginx
//	monitoring/  alert rules with their tests, a dashboard, a collector for traces
//	sam/         what ../template.yaml deploys beside the functions, and packages with them
//	d1-proxy/    the Worker of hosted_sql's proxy mode
//	test/        what the tests of this module need beside Go
//	words/       a program that measures how plainly the comments are written
//
// The idea to know: none of it is built, so nothing but a test notices when the program
// goes on and it does not. The tests here hold every metric, label, variable, command
// and file that it names against the program. They need no network; promtool,
// spectral, systemd-analyze and cfn-lint are asked as well where they are installed.
// Commands and flags are looked up in package cmd/gateway, which has them.
package infra
