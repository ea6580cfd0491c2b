// The overview: what is configured, and how it stands.
import { html } from './lib.js';
import { change, read, useRead } from './api.js';
import { to } from './place.js';
import { Curves, perName, useSeries } from './curves.js';
import { Send } from './send.js';
import { Confirm, Count, count, mark, Page, plural, Problem, span, Status, Table } from './ui.js';

// states returns the state of each consumer by its name.
function states(stats) {
  const all = {};
  for (const h of stats.handlers) all[h.name] = h;
  for (const q of stats.queues) all['queue/' + q.name] = q;
  for (const w of stats.workflows) all['workflow/' + w.name] = w;
  return all;
}

const unfinished = (s) => s.available + s.scheduled + s.waiting + s.running + s.retryable;

// trouble returns what keeps a consumer's jobs, as a status and in words; null if nothing does.
function trouble(s) {
  if (!s) return null;
  if (s.held_since) return ['held', 'held'];
  if (s.circuit_breaker && s.circuit_breaker !== 'closed') return [s.circuit_breaker, 'breaker ' + s.circuit_breaker];
  if (s.lines_stopped) return ['stopped', plural(s.lines_stopped, 'line') + ' stopped'];
  if (s.dead) return ['dead', count(s.dead) + ' dead'];
  if (s.oldest_due_seconds > 60) return ['retryable', 'behind by ' + span(s.oldest_due_seconds)];
  return null;
}

// level is how bad a trouble is, as a class of the picture.
const level = (is) => (!is ? '' : is[0] === 'held' || is[0] === 'retryable' || is[0] === 'half-open' ? 'warn' : 'bad');

const row = 58, box = 44, width = 920, left = 250, right = 330;

// Picture draws the sources at the left, the consumers at the right, and a curve for each that gets
// events. A source is as high as the middle of its consumers. did is how much each did in the window.
function Picture({ topology, now, did, window }) {
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
  const said = (name, kind, word) => (did[name]?.[kind] ? `${count(did[name][kind])} ${word}` : '');
  return html`<section class="card picture"><h2>From sources to consumers <span>in the last ${window}</span></h2><svg viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="Sources and their consumers">
    ${places.map(({ s, y }) => consumers.filter((c) => c.source === s.name).map((c) => {
      const to = ys.get(c.name), mid = (left + width - right) / 2;
      return html`<path class="edge" d=${`M${left} ${y}C${mid} ${y} ${mid} ${to} ${width - right} ${to}`} />`;
    }))}
    ${places.map(({ s, y }) => html`<a href=${to(['events'], { source: s.name })} class=${held.get(s.name) ? 'warn' : ''}>
      <rect x="1" y=${y - box / 2} width=${left - 1} height=${box} rx="8" />
      <text x="14" y=${y - 3}>${clip(s.name, 28)}</text>
      <text class="sub" x="14" y=${y + 14}>${held.get(s.name) ? mark('held') + ' held' : clip(s.schedule || (s.verify ? `${s.type}, ${s.verify}` : s.type), 20)}</text>
      <text class="sum" x=${left - 14} y=${y + 14} text-anchor="end">${said('source/' + s.name, 'accepted', 'in')}</text>
    </a>`)}
    ${consumers.map((c) => {
      const s = state[c.name], y = ys.get(c.name), n = s ? unfinished(s) : 0, x = width - right, bad = trouble(s);
      return html`<a href=${to(['jobs'], { handler: c.name })} class=${level(bad)}>
        <rect x=${x} y=${y - box / 2} width=${right - 1} height=${box} rx="8" />
        <text x=${x + 14} y=${y - 3}>${clip(c.name, 28)}</text>
        <text class="sub" x=${x + 14} y=${y + 14}>${bad ? `${mark(bad[0])} ${bad[1]}` : clip(c.events.join(', ') || 'all events', 30)}</text>
        <text class="sub" x=${width - 14} y=${y + 14} text-anchor="end">${n ? count(n) + ' to do' : ''}</text>
        <text class="sum" x=${width - 14} y=${y - 3} text-anchor="end">${said(c.name, 'completed', 'done')}</text>
      </a>`;
    })}
  </svg></section>`;
}

const clip = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);

const numbers = [
  ['available', 'due now', { status: 'available' }], ['running', 'running', { status: 'running' }], ['retryable', 'to be tried again', { status: 'retryable' }, 'warn'],
  ['scheduled', 'scheduled', { status: 'scheduled' }], ['waiting', 'waiting in lines', { status: 'waiting' }], ['dead', 'dead', { status: 'dead' }, 'bad'],
  ['completed', 'completed', { status: 'completed' }],
];

// State is what keeps a consumer's jobs. Dead jobs have a column of their own.
const State = ({ of }) => (!of ? html`<${Status} is="closed" text="fine" />` : html`<${Status} is=${of[0]} text=${of[0] === 'dead' ? 'dead jobs' : of[1]} />`);

// Reset closes an open circuit breaker.
const Reset = ({ name, done }) => html`<${Confirm} label="Close the breaker" done=${done} ask=${async () => `Deliveries to ${name} go on, slowly for the first ten seconds. If they fail again, the breaker opens again.`}
  act=${async () => { await change(`handlers/${encodeURIComponent(name)}/breaker/reset`); return `The breaker of ${name} is closed.`; }} />`;

export function Overview({ params, stats }) {
  const topology = useRead(() => read('topology'), []);
  const series = useSeries(params);
  const now = stats.data;
  if (!topology.data || !now) return html`<${Page} title="Overview"><${Problem} error=${topology.error || stats.error} again=${topology.again} />${!topology.error && !stats.error && html`<p class="muted" aria-busy="true">Reading …</p>`}<//>`;
  const state = states(now);
  const rows = Object.entries(state).map(([name, s]) => ({ ...s, name }));
  const broken = rows.some((r) => r.circuit_breaker && r.circuit_breaker !== 'closed');
  const did = perName(series.data);
  const nothing = series.data && !Object.values(did).some((d) => d.accepted) && !Object.values(now.jobs).some(Boolean);
  return html`<${Page} title="Overview" actions=${html`<${Send} topology=${topology.data} primary=${nothing} />`}>
    <${Problem} error=${stats.error} />
    ${nothing && html`<section class="card first"><h2>Nothing has come in yet</h2><p class="muted">An event comes in at a source, and goes to each consumer that wants it. Send a first one from this page, with <code>gateway send</code> or from your program: its deliveries are then shown here.</p></section>`}
    <div class="cards">${numbers.filter(([key]) => now.jobs[key] || key !== 'waiting').map(([key, text, params, tone]) =>
      html`<a class=${'card number ' + (tone && now.jobs[key] ? tone : '')} href=${to(['jobs'], params)}><b>${count(now.jobs[key])}</b><span>${text}</span></a>`)}</div>
    <${Curves} params=${params} series=${series} />
    ${topology.data.sources.length ? html`<${Picture} topology=${topology.data} now=${now} did=${did} window=${params.window === 'day' ? 'day' : 'hour'} />` : html`<p class="empty">No source is configured. A source is where events come in.</p>`}
    <${Table} caption="Consumers" rows=${rows} empty="No handler, queue or workflow is configured." link=${(r) => to(['jobs'], { handler: r.name })} columns=${[
      { name: 'Consumer', cell: (r) => r.name },
      { name: 'State', class: 'short', cell: (r) => html`<${State} of=${trouble(r)} />` },
      { name: 'Due', class: 'n', cell: (r) => html`<${Count} n=${r.available} />` },
      { name: 'Scheduled', class: 'n', cell: (r) => html`<${Count} n=${r.scheduled + r.waiting} />` },
      { name: 'Running', class: 'n', cell: (r) => html`<${Count} n=${r.running} />` },
      { name: 'Retrying', class: 'n', cell: (r) => html`<${Count} n=${r.retryable} />` },
      { name: 'Dead', class: 'n', cell: (r) => (r.dead ? html`<a href=${to(['jobs'], { handler: r.name, status: 'dead' })}>${count(r.dead)}</a>` : html`<${Count} n=${0} />`) },
      { name: 'Oldest due', class: 'n', cell: (r) => (r.oldest_due_seconds === null ? html`<span class="zero">–</span>` : span(r.oldest_due_seconds)) },
      ...(broken ? [{ name: '', cell: (r) => r.circuit_breaker && r.circuit_breaker !== 'closed' && html`<${Reset} name=${r.name} done=${stats.again} />` }] : []),
    ]} />
  <//>`;
}
