// Curves of the last hour or day: pictures with a sentence that says the same, and the numbers as a
// table.
import { html, useState } from './lib.js';
import { read, useRead } from './api.js';
import { go } from './place.js';
import { exact, Problem, Table } from './ui.js';

const number = (n) => Number(n).toLocaleString('en');
export const sum = (list) => list.reduce((a, b) => a + b, 0);

// kinds are what is counted. The class is the colour; the words say what it means.
const kinds = [
  { key: 'accepted', name: 'Events accepted', tone: '' },
  { key: 'completed', name: 'Deliveries completed', tone: 'good' },
  { key: 'failed', name: 'Attempts failed', tone: 'warn' },
  { key: 'dead', name: 'Jobs died', tone: 'bad' },
];

// totals adds up the lists of several names, by what is counted.
function totals(series, of) {
  const all = {};
  const rows = [...series.sources.map((s) => ({ ...s, id: 'source/' + s.name })), ...series.consumers.map((c) => ({ ...c, id: c.name }))];
  for (const row of rows) {
    if (of && row.id !== of) continue;
    for (const { key } of kinds) {
      if (!row[key]) continue;
      all[key] ||= new Array(series.steps).fill(0);
      row[key].forEach((n, i) => (all[key][i] += n));
    }
  }
  return all;
}

// beginning returns the time at which a step begins, as the API writes it.
const beginning = (series, i) => new Date(Date.parse(series.from + 'Z') + i * series.step_seconds * 1000).toISOString().replace('Z', '');
const clock = (t) => exact(t).slice(11, 16);

const high = 56;

// Bars is one picture. Each number is a bar; the last one is pale, as its time is not over.
function Bars({ kind, list, series }) {
  const top = Math.max(1, ...list);
  const last = list.length - 1;
  const open = beginning(series, last + 1) > series.until;
  const spoken = series.window === 'day' ? 'the last day' : 'the last hour';
  const each = series.window === 'day' ? '12 minutes' : 'a minute';
  const total = sum(list);
  const label = total ? `${kind.name} in ${spoken}: ${number(total)}, at most ${number(top)} in ${each}` : `${kind.name} in ${spoken}: none`;
  return html`<figure class=${'card curve ' + (total ? kind.tone : 'none')}>
    <figcaption><b>${number(total)}</b><span>${kind.name}</span></figcaption>
    <svg viewBox=${`0 0 ${list.length} ${high}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      ${list.map((n, i) => {
        const tall = n && Math.max(1.5, (n / top) * (high - 2));
        return n > 0 && html`<rect class=${open && i === last ? 'open' : ''} x=${i + 0.12} y=${high - 1 - tall} width="0.76" height=${tall}><title>${clock(beginning(series, i))}: ${number(n)}</title></rect>`;
      })}
      <path d=${`M0 ${high - 0.5}H${list.length}`} />
    </svg>
    <div class="axis" aria-hidden="true"><span>${clock(series.from)}</span><span>${total ? `peak ${number(top)}` : ''}</span><span>${clock(series.until)}</span></div>
  </figure>`;
}

// Numbers has the same as a table, the newest first. It is made when it is opened.
function Numbers({ all, series }) {
  const [open, set] = useState(false);
  const shown = kinds.filter(({ key }) => all[key]);
  const rows = [];
  for (let i = series.steps - 1; open && i >= 0; i--) rows.push({ key: i, i });
  return html`<details onToggle=${(e) => set(e.target.open)}><summary>Numbers</summary>
    ${open && html`<${Table} caption=${series.window === 'day' ? 'The last day, 12 minutes a row' : 'The last hour, a minute a row'} rows=${rows} columns=${[
      { name: 'From', cell: (r) => exact(beginning(series, r.i)) },
      ...shown.map(({ key, name }) => ({ name, class: 'n', cell: (r) => number(all[key][r.i]) })),
    ]} />`}
  </details>`;
}

// Choice is a parameter of the address.
const Choice = ({ label, name, options, value, params }) => html`<label><span>${label}</span>
  <select name=${name} onChange=${(e) => go([], { ...params, [name]: e.target.value })}>${options.map(([id, text]) => html`<option value=${id} selected=${id === value}>${text}</option>`)}</select></label>`;

// useSeries reads the numbers of the window that the address names.
export function useSeries(params) {
  const day = params.window === 'day';
  return useRead(() => read('series', { window: day ? 'day' : 'hour' }), [day], day ? 30000 : 5000);
}

// perName returns how much of a kind each name has in the window: {'source/app': {accepted: 3}, ...}.
export function perName(series) {
  const all = {};
  for (const s of series?.sources || []) all['source/' + s.name] = { accepted: sum(s.accepted || []) };
  for (const c of series?.consumers || []) all[c.name] = { completed: sum(c.completed || []) };
  return all;
}

export function Curves({ params, series: { data, error, again } }) {
  const names = data ? [...data.sources.map((s) => ['source/' + s.name, 'source ' + s.name]), ...data.consumers.map((c) => [c.name, c.name])] : [];
  const of = names.some(([id]) => id === params.of) ? params.of : '';
  const all = data && totals(data, of);
  return html`<section class="curves" aria-label="Curves">
    <div class="filters">
      <${Choice} label="Curves of" name="window" options=${[['', 'the last hour'], ['day', 'the last day']]} value=${params.window || ''} params=${params} />
      <${Choice} label="Source or consumer" name="of" options=${[['', 'all'], ...names]} value=${of} params=${params} />
    </div>
    <${Problem} error=${error} again=${again} />
    ${data && (Object.keys(all).length ? html`
      <div class="cards wide">${kinds.filter(({ key }) => all[key]).map((kind) => html`<${Bars} key=${kind.key} kind=${kind} list=${all[kind.key]} series=${data} />`)}</div>
      <${Numbers} all=${all} series=${data} />` : html`<p class="empty">Nothing is configured that could be counted.</p>`)}
  </section>`;
}
