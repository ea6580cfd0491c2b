// Package servers starts throwaway database servers for tests and benchmarks:
// PostgreSQL, MariaDB, and Cloudflare's D1 engine behind the HTTP calls that
// hosted_sql speaks. Beside them it runs the libraries by which providers of
// webhooks sign, see [Clients], a gRPC handler, see [GRPC], and an emulator of Azure Blob Storage, see [Azure]. It imports drivers
// and nothing of this module; nothing but tests and benchmarks imports it.
//
// A test asks for a database and gets one of its own, empty, in a server that is
// started once per test binary, by whoever asks first:
//
//	url := servers.Postgres(t)  // or servers.MySQL(t), servers.D1(t)
//
// Servers write to disk as in production: a commit is synced before it is
// answered. With GATEWAY_TEST_POSTGRES_URL or GATEWAY_TEST_MYSQL_URL set, the
// databases are made in that server instead. Where a component is missing, the
// test is skipped with a line that says how to get it; with CI=true it fails.
//
// Tests that kill servers, and benchmarks, start one of their own with
// [StartPostgres], [StartMySQL] or [StartD1]. [NewFaults] stands between a client
// and D1 and misbehaves to order.
//
// The idea to know: every server has a janitor, a shell at the other end of a
// pipe that this process holds. When the process ends, in whatever way, the pipe
// closes; the janitor then ends the server and removes its folder. So nothing
// has to be stopped in a TestMain, and kill -9 leaves nothing behind. Should the
// janitor be killed too, the folder is removed by the next one that starts a
// server.
package servers
