// Package servers starts throwaway database servers for tests and benchmarks: PostgreSQL,
// MariaDB, and Cloudflare's D1 engine behind the HTTP calls of hosted_sql. It also runs the
// libraries with which providers of webhooks sign, see [Clients], a gRPC handler, see [GRPC],
// and an emulator of Azure Blob Storage, see [Azure]. It imports drivers and, of this
// module, only infra/test/ports; only tests and benchmarks import it.
//
// A test asks for a database and gets its own empty database. The first such test starts the
// server of the test binary:
//
//	url := servers.Postgres(t)  // or servers.MySQL(t), servers.D1(t)
//
// Servers write to disk as in production: a commit is synced before it is answered. In packages
// that call memory.Use (infra/test/memory) their files are in memory. With
// GATEWAY_TEST_POSTGRES_URL or GATEWAY_TEST_MYSQL_URL set, the databases are made in that
// server instead. If a component is missing, the test is skipped with a line that says how to
// get it; with CI=true it fails.
//
// Tests that kill servers, and benchmarks, start their own with [StartPostgres], [StartMySQL]
// or [StartD1]. [NewFaults] is a proxy between a client and D1 that makes faults.
//
// The idea to know: every server has a janitor, a shell at the other end of a pipe that this
// process holds. When the process ends for any reason, the pipe closes. The janitor then ends
// the server and removes its folder. So TestMain need not stop anything, and kill -9 leaves
// nothing behind. If the janitor is killed too, the next process that starts a server removes
// the folder.
package servers
