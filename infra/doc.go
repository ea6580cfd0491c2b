// Package infra has the files for running a gateway, each kind in a folder of its own:
//
//	systemd/     a unit, its variables, the scripts that the packages run at installation
//	docker/      the image
//	compose/     a gateway on SQLite, PostgreSQL or MySQL, with its monitoring
//	proxy/       TLS in front of it, with Caddy or nginx
//	monitoring/  alert rules with their tests, a dashboard, a collector for traces
//	sam/         the files that ../template.yaml deploys beside the functions, or packages with them
//	d1-proxy/    the Worker of hosted_sql's proxy mode
//	test/        the programs and packages that the tests of this module need beside Go
//	words/       a program that measures how plainly the comments are written
//
// The idea to know: no compiler reads these files, so only a test can notice that the
// program has changed and they have not. The tests here compare every metric, label,
// variable, command and file name in them with the program. They need no network. Where
// promtool, spectral, systemd-analyze and cfn-lint are installed, the tests run them too.
// Commands and flags are checked against package cmd/gateway, which defines them.
package infra
