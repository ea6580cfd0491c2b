// node rig.mjs --folder DIR [--port N] starts an emulator of Azure Blob Storage on 127.0.0.1, with what it holds in
// memory, and writes DIR/ready.json when it answers: {"port"}. SIGTERM ends it.
import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({ options: { folder: { type: "string", default: "." }, port: { type: "string", default: "0" } } });

// The emulator reads its options from the command line.
process.argv = [
  ...process.argv.slice(0, 2), "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", options.port,
  "--skipApiVersionCheck", "--disableTelemetry", "--silent",
];
const require = createRequire(import.meta.url);
const { BlobServerFactory } = require("azurite/dist/src/blob/BlobServerFactory");
const server = await new BlobServerFactory().createServer();
await server.start();

const ready = join(options.folder, "ready.json");
writeFileSync(ready + ".new", JSON.stringify({ port: Number(new URL(server.getHttpServerAddress()).port) }));
renameSync(ready + ".new", ready);

const stop = async () => {
  await server.close();
  process.exit(0);
};
process.on("SIGTERM", stop).on("SIGINT", stop);
