// node rig.mjs --folder DIR [--port N] [--databases N] starts D1's engine (workerd, through miniflare) on 127.0.0.1
// with empty databases or with those that DIR keeps, and writes DIR/ready.json when it answers: {"port", "account",
// "token", "databases"}. SIGTERM ends it. Every database is served two ways:
//
//   REST API    /client/v4/accounts/{account}/d1/database/{database}/raw, an imitation, see api.js
//   own proxy   /proxy/{database}/raw, the Worker of infra/d1-proxy as it is
import { Miniflare } from "miniflare";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const text = (default_) => ({ type: "string", default: default_ });
const { values: options } = parseArgs({ options: { folder: text("."), port: text("0"), databases: text("1") } });
const here = dirname(fileURLToPath(import.meta.url));
const module = (path, file) => ({ type: "ESModule", path, contents: readFileSync(join(here, file), "utf8") });

const account = "0123456789abcdef0123456789abcdef";
const token = "test-token";
const databases = Array.from({ length: Number(options.databases) }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`);

const miniflare = new Miniflare({
  host: "127.0.0.1",
  modulesRoot: "/",
  modules: [module("/api.js", "api.js"), module("/proxy.js", "../../d1-proxy/worker.js")],
  compatibilityDate: "2026-04-01",
  bindings: { ACCOUNT: account, TOKEN: token },
  d1Databases: Object.fromEntries(databases.map((id) => [id, id])),
  d1Persist: join(options.folder, "databases"),
  // Requests go to the Worker at once. The door of miniflare in front of it is one more Worker, which takes a third of
  // the processor's time of a request.
  unsafeDirectSockets: [{ host: "127.0.0.1", port: Number(options.port) }],
  cf: false, // or it would fetch a sample of request metadata from the network
});
await miniflare.ready;
const { port } = await miniflare.unsafeGetDirectURL();

const ready = join(options.folder, "ready.json");
writeFileSync(ready + ".new", JSON.stringify({ port: Number(port), account, token, databases }));
renameSync(ready + ".new", ready);

const stop = async () => {
  await miniflare.dispose();
  process.exit(0);
};
process.on("SIGTERM", stop).on("SIGINT", stop);
