// Holds, schedules, and the configuration that serves.
import { html, useRef } from './lib.js';
import { change, read, remove, useRead } from './api.js';
import { visible } from './json.js';
import { to } from './place.js';
import { Ago, Confirm, Exact, Facts, Page, plural, Problem, Status, Table } from './ui.js';

// targets returns what can be held.
function targets(topology) {
  if (!topology) return [];
  return [...topology.consumers.map((c) => c.name), ...topology.sources.map((s) => 'source/' + s.name)];
}

// Hold is a button that holds one of some targets.
export function Hold({ of, done }) {
  const form = useRef();
  const act = async () => {
    const [target, until, reason] = ['target', 'until', 'reason'].map((n) => form.current.querySelector(`[name=${n}]`)?.value.trim());
    const body = { target: target || of[0] };
    if (until) body.until = new Date(Date.now() + Number(until) * 3600e3).toISOString().replace('Z', '');
    if (reason) body.reason = reason;
    return `${(await change('holds', body)).target} is held.`;
  };
  return html`<${Confirm} label="Hold" done=${done} ask=${async () => 'Its jobs wait until it is released. Events are accepted as always.'} act=${act}>
    <div ref=${form}>
      ${of.length > 1 && html`<label>What to hold<select name="target">${of.map((t) => html`<option value=${t}>${t}</option>`)}</select></label>`}
      <label>Until<select name="until"><option value="">it is released</option><option value="1">in an hour</option><option value="8">in 8 hours</option><option value="24">in a day</option></select></label>
      <label>Why<input name="reason" maxlength="200" autocomplete="off" /></label>
    </div><//>`;
}

// Release is a button that ends a hold.
export const Release = ({ target, done }) => html`<${Confirm} label="Release" done=${done} ask=${async () => `${target} goes on, slowly for the first ten seconds.`} act=${async () => { await remove('holds', { target }); return `${target} is released.`; }} />`;

export function Holds() {
  const { data, error, again } = useRead(() => read('holds'), [], 3000);
  const topology = useRead(() => read('topology'), []);
  const actions = html`<${Hold} of=${targets(topology.data)} done=${again} />`;
  return html`<${Page} title="Holds" actions=${actions}>
    <${Problem} error=${error} again=${again} />
    <${Table} caption="Holds" rows=${data?.holds.map((h) => ({ key: h.target, ...h }))} empty="Nothing is held. A hold stops a handler, queue, workflow or source, and nothing is lost." columns=${[
      { name: 'Target', cell: (r) => r.target },
      { name: 'Since', class: 'short', cell: (r) => html`<${Ago} t=${r.since} />` },
      { name: 'Until', class: 'short', cell: (r) => (r.until ? html`<${Exact} t=${r.until} />` : 'it is released') },
      { name: 'Reason', class: 'text', cell: (r) => r.reason || '–' },
      { name: '', cell: (r) => html`<${Release} target=${r.target} done=${again} />` },
    ]} />
  <//>`;
}

// Fire is a button that makes an event of a schedule now.
const Fire = ({ source }) => html`<${Confirm} label="Fire now" ask=${async () => `An event of ${source} is made now, beside the times of its schedule.`} act=${async () => {
  const f = await change(`schedules/${encodeURIComponent(source)}/fire`);
  return `${source} was fired: ${plural(f.jobs, 'job')}${f.held ? ', waiting for the release of the source' : ''}.`;
}} />`;

export function Schedules() {
  const { data, error, again } = useRead(() => read('topology'), [], 30000);
  const rows = data?.sources.filter((s) => s.type === 'cron');
  return html`<${Page} title="Schedules">
    <${Problem} error=${error} again=${again} />
    <${Table} caption="Sources of type cron" rows=${rows} empty="No source has a schedule." link=${(r) => to(['events'], { source: r.name })} columns=${[
      { name: 'Source', cell: (r) => r.name },
      { name: 'Schedule', class: 'short', cell: (r) => html`<code>${r.schedule}</code>` },
      { name: 'Zone', cell: (r) => r.timezone },
      { name: 'Next times', class: 'short', cell: (r) => (r.next || []).map((t) => html`<div><${Exact} t=${t} /> (<${Ago} t=${t} />)</div>`) },
      { name: 'Consumers', class: 'text', cell: (r) => data.consumers.filter((c) => c.source === r.name).map((c) => c.name).join(', ') || 'none' },
      { name: '', cell: (r) => html`<${Fire} source=${r.name} />` },
    ]} />
  <//>`;
}

// The results of a reload, as statuses.
const results = { applied: 'succeeded', unchanged: 'succeeded', unreachable: 'retryable' };

// Configuration shows the rules by which events are handled, without secrets.
export function Configuration() {
  const { data, error, again } = useRead(() => read('config'), [], 30000);
  const last = data?.last_reload;
  return html`<${Page} title="Configuration">
    <${Problem} error=${error} again=${again} />
    <p class="muted">What this gateway serves now: the fields that decide what becomes of an event, merged and with variables filled in. Values of headers, and of queries in addresses, are masked. To see what another file would change: <code>gateway preview</code>.</p>
    ${data && html`<${Facts} of=${[
      ['Loaded', html`<${Ago} t=${data.loaded_at} />`],
      ['Last reload', last && html`<${Status} is=${results[last.result] || 'failed'} text=${last.result} /> <${Ago} t=${last.at} />, by ${last.by === 'signal' ? 'signal' : 'a change at its address'}`],
      ['Read from', last && visible(last.from)],
      ['Not followed, since', last?.error && visible(last.error), true],
    ]} />
    <section class="card"><pre class="block tall" tabindex="0" aria-label="Configuration">${visible(data.configuration)}</pre></section>`}
  <//>`;
}
