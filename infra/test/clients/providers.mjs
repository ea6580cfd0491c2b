// node providers.mjs signs and verifies webhook requests with the providers' own libraries. One request per line of
// standard input, one answer per line of standard output, in the same order; it ends with its input. Bodies are
// base64, so that their bytes survive.
//
//   {"do": "sign", "provider", "secret", "body", "id", "type", "time"}   → {"headers": {...}, "body"}
//   {"do": "verify", "provider", "secret", "headers": {...}, "body"}     → {"verified": true}, {"verified": false, "why"}
//   what cannot be done                                                  → {"error"}
//
// "id" is the provider's name for the delivery, "type" that of the event, "time" what a signature over a time says, in
// Unix seconds. Names of headers are in lower case. A library is loaded by the first request that needs it.
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";

const libraries = {
  stripe: async () => new (await import("stripe")).default("sk_test_unused"),
  github: () => import("@octokit/webhooks-methods"),
  standardwebhooks: async () => (await import("standardwebhooks")).default,
  slack: async () => (await import("@slack/bolt/dist/receivers/verify-request.js")).default, // all of bolt takes 0.4 s
  cloudevents: async () => (await import("cloudevents")).default,
};

const sign = {
  stripe: async (stripe, { secret, text, time }) => ({
    "content-type": "application/json; charset=utf-8",
    "stripe-signature": await stripe.webhooks.generateTestHeaderStringAsync({ payload: text, secret, timestamp: time }),
  }),

  github: async (methods, { secret, text, id, type }) => ({
    "content-type": "application/json",
    "x-github-event": type,
    "x-github-delivery": id,
    "x-hub-signature-256": await methods.sign(secret, text),
  }),

  standardwebhooks: ({ Webhook }, { secret, text, id, time }) => ({
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(time),
    "webhook-signature": new Webhook(secret).sign(id, new Date(time * 1000), text),
  }),

  // Slack's library only verifies. So this follows https://docs.slack.dev/authentication/verifying-requests-from-slack,
  // and the library, put back to the time in question, has to agree.
  slack: ({ verifySlackRequest }, { secret, text, time }) => {
    const headers = {
      "content-type": "application/json",
      "x-slack-request-timestamp": String(time),
      "x-slack-signature": "v0=" + createHmac("sha256", secret).update(`v0:${time}:${text}`).digest("hex"),
    };
    verifySlackRequest({ signingSecret: secret, body: text, headers, nowMilliseconds: time * 1000 });
    return headers;
  },

  // CloudEvents prove nothing; the library writes them. The body becomes the event's data.
  "cloudevents-binary": ({ HTTP, CloudEvent }, request) => HTTP.binary(new CloudEvent(attributes(request))),
  "cloudevents-structured": ({ HTTP, CloudEvent }, request) => HTTP.structured(new CloudEvent(attributes(request))),
};

const attributes = ({ text, id, type, time }) => ({
  id,
  type,
  source: "/shop",
  time: new Date(time * 1000).toISOString(),
  subject: "cart 7",
  region: "eu", // an extension
  datacontenttype: "application/json",
  data: JSON.parse(text),
});

// Each throws, or returns false, if the request does not prove itself.
const verify = {
  stripe: (stripe, { secret, bytes, headers }) => stripe.webhooks.constructEventAsync(bytes, headers["stripe-signature"], secret),
  github: (methods, { secret, text, headers }) => methods.verify(secret, text, headers["x-hub-signature-256"]),
  standardwebhooks: ({ Webhook }, { secret, bytes, headers }) => new Webhook(secret).verify(bytes, headers, { jsonParse: false }) ?? true,
  slack: ({ verifySlackRequest }, { secret, text, headers }) =>
    verifySlackRequest({ signingSecret: secret, body: text, headers }) ?? true,
  cloudevents: ({ HTTP }, { text, headers }) => HTTP.isEvent({ headers, body: text }) && HTTP.toEvent({ headers, body: text }).validate(),
};

const loaded = new Map();
async function library(provider) {
  const name = provider.startsWith("cloudevents") ? "cloudevents" : provider;
  if (!loaded.has(name)) loaded.set(name, await libraries[name]());
  return loaded.get(name);
}

async function answer(request) {
  const operation = { sign, verify }[request.do]?.[request.provider];
  if (!operation) throw new Error(`cannot ${request.do} for provider ${request.provider}`);
  const bytes = Buffer.from(request.body ?? "", "base64");
  const text = bytes.toString();
  if (!bytes.equals(Buffer.from(text))) throw new Error("the body is not UTF-8, which the libraries take for granted");
  const used = await library(request.provider);
  const asked = { time: Math.floor(Date.now() / 1000), id: "", type: "", headers: {}, ...request, bytes, text };
  if (request.do === "sign") {
    const signed = await operation(used, asked);
    const { headers, body } = signed.headers ? signed : { headers: signed, body: text };
    return { headers, body: Buffer.from(body).toString("base64") };
  }
  try {
    return (await operation(used, asked)) ? { verified: true } : { verified: false, why: "it says no" };
  } catch (error) {
    return { verified: false, why: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    reply = await answer(JSON.parse(line));
  } catch (error) {
    reply = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
