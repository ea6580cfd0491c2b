// The attempts of a job: what was sent, and what was answered.
import { html, useState } from './lib.js';
import { read } from './api.js';
import { pretty, visible } from './json.js';
import { Copied, copy, Exact, Problem, span, Status } from './ui.js';

// Headers lists headers by name.
const Headers = ({ of, label }) => html`<dl class="headers" aria-label=${label}>${Object.keys(of).sort().map((name) => html`<div><dt>${visible(name)}</dt><dd>${visible(of[name])}</dd></div>`)}</dl>`;

const bytes = (n) => (n < 1024 ? `${n} bytes` : `${(n / 1024).toFixed(1)} KiB`);

// shown returns a body as a person reads it.
function shown(text) {
  try {
    JSON.parse(text);
    return visible(pretty(text));
  } catch {
    return visible(text);
  }
}

// Body shows the kept body of an attempt when it is asked for.
function Body({ at, r, event }) {
  const [state, put] = useState({});
  if (!r.body_size) return html`<p class="muted">No body.</p>`;
  const load = async () => {
    try {
      put({ body: (await read(at + '/body')).body });
    } catch (error) {
      put({ error });
    }
  };
  return html`<p>Body: ${bytes(r.body_size)}, SHA-256 <code class="id">${r.body_sha256}</code></p>
    ${state.body !== undefined ? html`<pre class="block" tabindex="0" aria-label="Body that was sent">${shown(state.body)}</pre>${r.body_kept < r.body_size && html`<p class="muted">The first ${bytes(r.body_kept)} are kept.</p>`}`
      : r.body_kept ? html`<p><button type="button" onClick=${load}>Show the body</button></p>`
        : html`<p class="muted">The body was not kept: it is the <a href=${event}>payload of the event</a>, or was made from it. <code>delivery.record: all</code> keeps bodies that are made.</p>`}
    <${Problem} error=${state.error} />`;
}

// Curl copies the command that sends the request again, and shows it: a browser may refuse to copy.
function Curl({ at }) {
  const [state, put] = useState({});
  const load = async () => {
    try {
      const { command, variables } = await read(at + '/curl');
      put({ command, variables, copied: await copy(command) });
    } catch (error) {
      put({ error });
    }
  };
  return html`<p><button type="button" onClick=${load}>Copy as curl</button> <${Copied} is=${state.copied} /></p>
    ${state.variables?.length > 0 && html`<p class="muted">Secrets are masked. Set first: ${state.variables.map((v, i) => html`${i > 0 && ', '}<code>${v}</code>`)}.</p>`}
    ${state.command && html`<pre class="block" tabindex="0" aria-label="The curl command">${visible(state.command)}</pre>`}
    <${Problem} error=${state.error} />`;
}

function Request({ at, r, event }) {
  return html`<details><summary>Request</summary>
    <p class="mono sent">${r.method} ${visible(r.url)}</p>
    <${Headers} of=${r.headers} label="Headers that were sent" />
    <${Body} at=${at} r=${r} event=${event} />
    ${r.cut && html`<p class="muted">The URL or headers are longer than what is kept.</p>`}
    ${!r.method.startsWith('/') && html`<${Curl} at=${at} />`}
  </details>`;
}

function Attempt({ a, at, event }) {
  const ok = !a.error && (a.status_code === null || (a.status_code >= 200 && a.status_code < 300));
  return html`<li>
    <div class="line"><strong>Attempt ${a.attempt}</strong><${Status} is=${ok ? 'completed' : 'failed'} />
      ${a.status_code !== null && html`<span>status ${a.status_code}</span>`}<span>${span(a.duration_ms / 1000)}</span><span class="muted"><${Exact} t=${a.created_at} /></span></div>
    ${a.error && html`<p>${visible(a.error)}</p>`}
    ${a.request && html`<${Request} at=${at} r=${a.request} event=${event} />`}
    ${(a.response || a.response_headers) && html`<details><summary>Reply</summary>
      ${a.response_headers && html`<${Headers} of=${a.response_headers} label="Headers of the reply" />`}
      ${a.response ? html`<pre class="block" tabindex="0" aria-label="Body of the reply">${shown(a.response)}</pre>` : html`<p class="muted">No body.</p>`}</details>`}
  </li>`;
}

// Attempts lists the attempts of a job, the newest first. event is the address of its event. Messages
// of a queue are fetched, so nothing is sent.
export function Attempts({ job, rows, event }) {
  const silent = !job.handler.startsWith('queue/') && rows.some((a) => !a.request);
  if (!rows.length) return html`<p class="empty">It was not attempted yet.</p>`;
  return html`${silent && html`<p class="muted">What was sent is not recorded${rows.some((a) => a.request) ? ' of all attempts' : ''}. <code>delivery.record: headers</code>, or <code>record: headers</code> of a handler, records the request and the headers of the reply of later attempts; <code>all</code> records bodies as well.</p>`}
    <ol class="tries">${[...rows].reverse().map((a) => html`<${Attempt} key=${a.created_at + a.attempt} a=${a} event=${event} at=${`jobs/${encodeURIComponent(job.id)}/attempts/${a.attempt}`} />`)}</ol>`;
}
