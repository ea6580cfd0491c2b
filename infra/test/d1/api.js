// Runs inside workerd. It imitates Cloudflare's REST API for D1: the paths, the bearer token, the envelope, statuses and
// error codes are written here; the engine, its authorizer and its limits are the real ones. Requests to
// /proxy/{database}/... go to the gateway's own proxy Worker, which gets that database as its only one.
//
// Unlike the real API it takes one statement in each "sql".
import proxy from "./proxy.js";

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, first, id] = url.pathname.split("/", 3);
    if (first !== "proxy") return rest(request, url, env);
    url.pathname = url.pathname.slice(`/proxy/${id}`.length) || "/";
    return proxy.fetch(new Request(url, request), { DB: env[id], API_TOKEN: env.TOKEN });
  },
};

async function rest(request, url, env) {
  const [, account, id] = url.pathname.match(/^\/client\/v4\/accounts\/([^/]+)\/d1\/database\/([^/]+)\/raw$/) ?? [];
  if (!id) return refuse(404, 7003, `Could not route to ${url.pathname}, perhaps your object identifier is invalid?`);
  if (request.method !== "POST") return refuse(405, 10405, "Method not allowed for this authentication scheme");
  const bearer = request.headers.get("authorization");
  // A token that is valid but lacks the permission D1 Edit.
  if (bearer === `Bearer ${env.TOKEN}-without-rights`) return refuse(403, 10000, "Authentication error");
  if (bearer !== `Bearer ${env.TOKEN}`) return refuse(401, 10000, "Authentication error");
  if (account !== env.ACCOUNT) {
    return refuse(403, 7403, "The given account is not valid or is not authorized to access this service");
  }
  if (!env[id]?.prepare) return refuse(404, 7404, `The database ${id} could not be found`);
  return answer(env[id], await request.text());
}

async function answer(db, text) {
  let statements;
  try {
    const body = JSON.parse(text);
    statements = (body.batch ?? [body]).map(({ sql, params }) => ({ sql, params: (params ?? []).map(bound) }));
  } catch {
    statements = [];
  }
  if (statements.length === 0 || statements.some(({ sql }) => typeof sql !== "string" || sql.trim() === "")) {
    return refuse(400, 7400, "The request is malformed: either the SQL is missing or it is not valid JSON");
  }
  const results = await run(db, statements);
  const failed = results.find(({ success }) => !success);
  if (failed) return refuse(400, 7500, failed.error);
  return envelope(200, [], results.map(({ success, meta, results }) => ({ results, success, meta })));
}

// The binding makes an object of each row, so that columns are lost where there are no rows or where two have one name.
// What it is wrapped around answers with columns and rows, as the REST API does.
async function run(db, statements) {
  const response = await db.fetcher.fetch("http://d1/query?resultsFormat=ROWS_AND_COLUMNS", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(statements),
  });
  const results = await response.json();
  return Array.isArray(results) ? results : [results];
}

const bound = (param) => (typeof param === "boolean" ? Number(param) : param);

const refuse = (status, code, message) => envelope(status, [{ code, message }], null);

const envelope = (status, errors, result) =>
  Response.json({ result, success: errors.length === 0, errors, messages: [] }, { status });
