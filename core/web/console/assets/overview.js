// The overview: what is configured, and how it stands.
import { html } from './lib.js';
import { read, useRead } from './api.js';
import { to } from './place.js';
import { Curves } from './curves.js';
import { count, Page, plural, Problem, span, Status, Table } from './ui.js';

// states returns the state of each consumer by its name.
function states(stats) {
  const all = {};
  for (const h of stats.handlers) all[h.name] = h;
  for (const q of stats.queues) all['queue/' + q.name] = q;
  for (const w of stats.workflows) all['workflow/' + w.name] = w;
  return all;
}

const unfinished = (s) => s.available + s.scheduled + s.waiting + s.running + s.retryable;

// trouble says in a word what keeps a consumer's jobs; "" if nothing does.
function trouble(s) {
  if (!s) return '';
  if (s.held_since) return 'held';
  if (s.circuit_breaker && s.circuit_breaker !== 'closed') return 'circuit breaker ' + s.circuit_breaker;
  if (s.lines_stopped) return plural(s.lines_stopped, 'line') + ' stopped';
  if (s.dead) return count(s.dead) + ' dead';
  if (s.oldest_due_seconds > 60) return 'behind by ' + span(s.oldest_due_seconds);
  return '';
}

// level is how bad a trouble is, as a class of the picture.
const level = (s) => (!trouble(s) ? '' : s.dead || (s.circuit_breaker && s.circuit_breaker !== 'closed') || s.lines_stopped ? 'bad' : 'warn');

const row = 58, box = 44, width = 920, left = 250, right = 330;

// Picture draws the sources at the left, the consumers at the right, and a curve for each that gets
// events. A source is as high as the middle of its consumers.
function Picture({ topology, now }) {
  const sources = [...topology.sources], consumers = [];
  for (const s of sources) consumers.push(...topology.consumers.filter((c) => c.source === s.name));
  const height = Math.max(sources.length, consumers.length) * row;
  const spread = (n) => (height / Math.max(n, 1)) ;
  const ys = new Map(consumers.map((c, i) => [c.name, spread(consumers.length) * (i + 0.5)]));
  let floor = 0;
  const places = sources.map((s, i) => {
    const mine = consumers.filter((c) => c.source === s.name).map((c) => ys.get(c.name));
    const wanted = mine.length ? mine.reduce((a, b) => a + b) / mine.length : spread(sources.length) * (i + 0.5);
    const most = height - row / 2 - (sources.length - 1 - i) * row;
    const y = Math.min(Math.max(wanted, floor + row / 2), most);
    floor = y + row / 2;
    return { s, y };
  });
  const held = new Map(now.sources.map((s) => [s.name, s.held_since]));
  const state = states(now);
  return html`<div class="card picture"><svg viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="Sources and their consumers">
    ${places.map(({ s, y }) => consumers.filter((c) => c.source === s.name).map((c) => {
      const to = ys.get(c.name), mid = (left + width - right) / 2;
      return html`<path class="edge" d=${`M${left} ${y}C${mid} ${y} ${mid} ${to} ${width - right} ${to}`} />`;
    }))}
    ${places.map(({ s, y }) => html`<a href=${to(['events'], { source: s.name })} class=${held.get(s.name) ? 'warn' : ''}>
      <rect x="1" y=${y - box / 2} width=${left - 1} height=${box} rx="8" />
      <text x="14" y=${y - 3}>${clip(s.name, 28)}</text>
      <text class="sub" x="14" y=${y + 14}>${held.get(s.name) ? 'held' : clip(s.schedule || (s.verify ? `${s.type}, ${s.verify}` : s.type), 34)}</text>
    </a>`)}
    ${consumers.map((c) => {
      const s = state[c.name], y = ys.get(c.name), n = s ? unfinished(s) : 0, x = width - right;
      return html`<a href=${to(['jobs'], { handler: c.name })} class=${level(s)}>
        <rect x=${x} y=${y - box / 2} width=${right - 1} height=${box} rx="8" />
        <text x=${x + 14} y=${y - 3}>${clip(c.name, 38)}</text>
        <text class="sub" x=${x + 14} y=${y + 14}>${trouble(s) || clip(c.events.join(', ') || 'all events', 30)}</text>
        <text class="sub" x=${width - 14} y=${y + 4} text-anchor="end">${n ? count(n) + ' to do' : ''}</text>
      </a>`;
    })}
  </svg></div>`;
}

const clip = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);

const numbers = [
  ['available', 'due now', { status: 'available' }], ['running', 'running', { status: 'running' }], ['retryable', 'to be tried again', { status: 'retryable' }, 'warn'],
  ['scheduled', 'scheduled', { status: 'scheduled' }], ['waiting', 'waiting in lines', { status: 'waiting' }], ['dead', 'dead', { status: 'dead' }, 'bad'],
  ['completed', 'completed', { status: 'completed' }],
];

export function Overview({ params, stats }) {
  const topology = useRead(() => read('topology'), []);
  const now = stats.data;
  if (!topology.data || !now) return html`<${Page} title="Overview"><${Problem} error=${topology.error || stats.error} again=${topology.again} />${!topology.error && !stats.error && html`<p class="muted" aria-busy="true">Reading …</p>`}<//>`;
  const state = states(now);
  const known = new Map(topology.data.consumers.map((c) => [c.name, c]));
  const rows = Object.entries(state).map(([name, s]) => ({ name, ...s, kind: known.get(name)?.kind }));
  return html`<${Page} title="Overview">
    <${Problem} error=${stats.error} />
    <div class="cards">${numbers.filter(([key]) => now.jobs[key] || key !== 'waiting').map(([key, text, params, tone]) =>
      html`<a class=${'card number ' + (tone && now.jobs[key] ? tone : '')} href=${to(['jobs'], params)}><b>${count(now.jobs[key])}</b><span>${text}</span></a>`)}</div>
    <${Curves} params=${params} />
    ${topology.data.sources.length ? html`<${Picture} topology=${topology.data} now=${now} />` : html`<p class="empty">No source is configured. A source is where events come in.</p>`}
    <${Table} caption="Consumers" rows=${rows} empty="No handler, queue or workflow is configured." link=${(r) => to(['jobs'], { handler: r.name })} columns=${[
      { name: 'Consumer', cell: (r) => r.name },
      { name: 'Due', class: 'n', cell: (r) => count(r.available) },
      { name: 'Scheduled', class: 'n', cell: (r) => count(r.scheduled + r.waiting) },
      { name: 'Running', class: 'n', cell: (r) => count(r.running) },
      { name: 'Retrying', class: 'n', cell: (r) => count(r.retryable) },
      { name: 'Dead', class: 'n', cell: (r) => (r.dead ? html`<a href=${to(['jobs'], { handler: r.name, status: 'dead' })}>${count(r.dead)}</a>` : '0') },
      { name: 'Oldest due', class: 'n', cell: (r) => (r.oldest_due_seconds === null ? '–' : span(r.oldest_due_seconds)) },
      { name: 'State', cell: (r) => (r.held_since ? html`<${Status} is="held" />` : r.circuit_breaker && r.circuit_breaker !== 'closed' ? html`<${Status} is=${r.circuit_breaker} title="circuit breaker" />` : r.lines_stopped ? plural(r.lines_stopped, 'line') + ' stopped' : '–') },
    ]} />
  <//>`;
}
