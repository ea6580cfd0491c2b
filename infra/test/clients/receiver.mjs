// node receiver.mjs --folder FOLDER --port PORT [--cert FILE --key FILE] is a gRPC handler on 127.0.0.1, written with
// another stack than the gateway. PORT 0 means any; FOLDER/ready.json says which. With a certificate it speaks TLS.
//
// Each call is written to FOLDER/calls, one line {"request", "metadata", "deadline"} each, before it is answered. What
// the answer is, the call's own metadata says: x-answer is JSON with any of
//
//   success, message     the answer; true and "" unless told otherwise
//   fill                 how many bytes of "x" follow the message
//   code, details        a status instead of an answer
//   trailer              trailing metadata, {name: value}; values of names in -bin are base64
//   header               true sends headers before anything else
//   delay                milliseconds to wait first
//   hang                 true never answers
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const { values: args } = parseArgs({
  options: { folder: { type: "string" }, port: { type: "string" }, cert: { type: "string" }, key: { type: "string" } },
});
const proto = fileURLToPath(new URL("../../../proto/gateway/v1/receiver.proto", import.meta.url));
const { EventReceiver } = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, defaults: true })).gateway.v1;

function trailing(pairs = {}) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(pairs)) {
    metadata.set(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  return metadata;
}

function deliver(call, reply) {
  const { request, metadata } = call;
  const line = { request, metadata: metadata.getMap(), deadline: call.getDeadline().valueOf() };
  appendFileSync(path.join(args.folder, "calls"), JSON.stringify(line) + "\n");
  const answer = JSON.parse(metadata.get("x-answer")[0] ?? "{}");
  const { success = true, message = "", fill = 0, code, details, trailer, header, delay = 0, hang } = answer;
  if (header) call.sendMetadata(new grpc.Metadata());
  if (hang) return;
  setTimeout(() => {
    if (code !== undefined) return reply({ code, details, metadata: trailing(trailer) });
    reply(null, { success, message: message + "x".repeat(fill) }, trailing(trailer));
  }, delay);
}

const credentials = args.cert
  ? grpc.ServerCredentials.createSsl(null, [{ cert_chain: readFileSync(args.cert), private_key: readFileSync(args.key) }])
  : grpc.ServerCredentials.createInsecure();
const server = new grpc.Server();
server.addService(EventReceiver.service, { Deliver: deliver });
server.bindAsync(`127.0.0.1:${args.port}`, credentials, (error, port) => {
  if (error) throw error;
  const ready = path.join(args.folder, "ready.json");
  writeFileSync(ready + ".new", JSON.stringify({ port }));
  renameSync(ready + ".new", ready);
});
process.on("SIGTERM", () => server.tryShutdown(() => process.exit(0)));
