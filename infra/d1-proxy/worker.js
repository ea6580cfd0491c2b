// The event gateway's door to a D1 database: a Cloudflare Worker for driver hosted_sql with hosted_sql_endpoint.
// POST /raw takes the body of D1's REST call of that name, {"sql", "params"} or {"batch": [{"sql", "params"}, ...]},
// and answers with the same envelope, so that one client serves both. It is not held to the REST API's 1,200 requests
// in 5 minutes.
//
// Bindings: DB, the database; API_TOKEN, a secret, the bearer token that callers must show.
//
// What callers must know:
//
//   - One statement in each "sql". Of several, D1 runs all and returns the last one's result.
//   - Selected columns have names that differ and are not numbers: "SELECT a.id, b.id AS other_id". D1 hands the rows of
//     a batch over as objects. Their keys are in the order of the columns, but equal names fall together and numbers
//     come first. Without rows there are no columns.
//   - Integers beyond 2^53 come back rounded, as from D1 itself: CAST them AS TEXT.

// Bytes of a request body. An isolate has 128 MB for all requests it is serving, and a body is held about four times:
// as text, parsed, as what is sent to D1, and in flight.
const maxBody = 16 << 20;

// The ends of D1 that pass; https://developers.cloudflare.com/d1/observability/debug-d1/ lists them.
const transient = new RegExp([
  "reset because its code was updated",
  "caused object to be reset", // while starting, by an error in storage, by a timeout in storage
  "Network connection lost",
  "Cannot resolve D1 DB due to transient issue",
  "D1 DB is overloaded",
  "Too many requests queued",
  "exceeded its memory limit",
  "exceeded its CPU time limit",
  "client disconnected",
].join("|"));

export default {
  async fetch(request, env) {
    try {
      return await answer(request, env);
    } catch (e) {
      return e instanceof Refusal ? e.response() : failure(e).response();
    }
  },
};

async function answer(request, env) {
  const { pathname } = new URL(request.url);
  if (pathname === "/" && (request.method === "GET" || request.method === "HEAD")) {
    return reply("Event gateway: proxy for a D1 database. POST /raw, with a bearer token.\n", 200, { "content-type": "text/plain" });
  }
  await authenticate(request, env);
  if (pathname !== "/raw") throw new Refusal(404, 7003, `no route ${pathname}: the only one is POST /raw`);
  if (request.method !== "POST") throw new Refusal(405, 7001, `method ${request.method} is not allowed: use POST`, { allow: "POST" });
  if (!env.DB) throw new Refusal(500, 7500, "this Worker has no database: bind one as DB in wrangler.toml and deploy it again");
  return envelope(await run(env.DB, statements(await body(request))));
}

// authenticate compares digests, which have one length whatever the token's, in constant time.
async function authenticate(request, env) {
  const expected = env.API_TOKEN?.trim();
  if (!expected) {
    throw new Refusal(401, 10000, "every request is refused because this Worker has no token: set one with npx wrangler secret put API_TOKEN");
  }
  const [, given = ""] = /^Bearer +(.*)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  if (!crypto.subtle.timingSafeEqual(await digest(given), await digest(expected))) {
    throw new Refusal(401, 10000, "missing or wrong bearer token", { "www-authenticate": "Bearer" });
  }
}

const digest = (text) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));

// body returns the JSON value of a request. It counts what arrives, since a length need not be announced.
async function body(request) {
  if (Number(request.headers.get("content-length")) > maxBody) throw tooLarge();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "", size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      if ((size += chunk.byteLength) > maxBody) throw tooLarge();
      text += decoder.decode(chunk, { stream: true });
    }
    return JSON.parse(text + decoder.decode());
  } catch (e) {
    throw e instanceof Refusal ? e : malformed("the body is not JSON in UTF-8");
  }
}

// statements returns the list of statements that a request asks for.
function statements(value) {
  const { sql, batch } = value ?? {};
  if (sql !== undefined && batch !== undefined) throw malformed("sql and batch exclude each other");
  const list = batch === undefined ? [value] : batch;
  if (!Array.isArray(list) || list.length === 0) throw malformed("batch must be a list of statements, at least one");
  list.forEach((s, i) => {
    if (typeof s?.sql !== "string" || s.sql.trim() === "") throw malformed(`statement ${i}: sql must be a text that is not empty`);
    const params = s.params ?? [];
    if (!Array.isArray(params)) throw malformed(`statement ${i}: params must be a list`);
    const bad = params.findIndex((p) => (p !== null && typeof p === "object") || isRounded(p));
    if (bad >= 0) throw malformed(`statement ${i}: param ${bad} must be a text, a boolean, null or a number; integers beyond 2^53 as text`);
  });
  return list;
}

// isRounded tells an integer that JSON.parse could not keep as it was: better refused than stored as another one.
const isRounded = (p) => Number.isInteger(p) && !Number.isSafeInteger(p);

// run sends all statements as one batch, which is one transaction: all take effect or none does. A single statement
// goes the same way, since raw(), which knows the columns better, says nothing of how many rows were changed.
async function run(db, list) {
  const results = await db.batch(list.map(({ sql, params }) => db.prepare(sql).bind(...(params ?? []))));
  const failed = results.find((r) => !r.success);
  if (failed) throw new Error(failed.error);
  return results.map(({ meta, results: objects }) => {
    const columns = Object.keys(objects[0] ?? {});
    return { success: true, meta, results: { columns, rows: objects.map((o) => columns.map((c) => o[c])) } };
  });
}

// failure says what became of a batch: 503, it may have taken effect and is worth another try; 400, D1 refused it for
// its SQL and it had no effect; 500, nobody knows.
function failure(e) {
  const message = String(e?.message ?? e).replace(/^D1_ERROR: /, "");
  if (transient.test(message)) return new Refusal(503, 7500, message, { "retry-after": "1" });
  return new Refusal(/\bSQL(ITE_|\b)/.test(message) ? 400 : 500, 7500, message);
}

class Refusal extends Error {
  constructor(status, code, message, headers = {}) {
    super(message);
    Object.assign(this, { status, code, headers });
  }

  response() {
    return envelope([], this.status, [{ code: this.code, message: this.message }], this.headers);
  }
}

const malformed = (message) => new Refusal(400, 7400, message);

const tooLarge = () => new Refusal(413, 7400, `the body is larger than ${maxBody} bytes`);

function envelope(result, status = 200, errors = [], headers = {}) {
  const body = { success: errors.length === 0, errors, messages: [], result };
  return reply(JSON.stringify(body), status, { "content-type": "application/json", ...headers });
}

function reply(body, status, headers) {
  return new Response(body, { status, headers: { "cache-control": "no-store", "x-content-type-options": "nosniff", ...headers } });
}
