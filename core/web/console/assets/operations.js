// Operations: changes of all jobs, events or runs that a filter selects.
import { html, useRef, useState } from './lib.js';
import { change, read, useRead } from './api.js';
import { go, to } from './place.js';
import { visible } from './json.js';
import { Ago, Confirm, count, Exact, exact, Facts, Id, Page, Pager, plural, Problem, span, Status, Table, useMay } from './ui.js';

const path = ['operations'];

const nouns = { retry: 'job', cancel: 'job', replay: 'event', redrive: 'run' };
const done = { retry: 'retried', cancel: 'canceled', replay: 'replayed', redrive: 'redriven' };

// selection says in words what an operation selects.
function selection(o) {
  const f = o.filter;
  const text = [f.status, nouns[o.action] + 's'];
  if (f.consumer) text.push('of', f.consumer);
  if (f.source) text.push('of source', f.source);
  if (f.event_type) text.push('of type', f.event_type);
  if (f.since) text.push('since', exact(f.since));
  if (f.until) text.push('until', exact(f.until));
  if (f.error) text.push(`whose error contains “${f.error}”`);
  if (f.match) text.push('that match', f.match);
  if (f.delivery_id) text.push('with delivery id', f.delivery_id);
  if (f.first) text.push('from', f.first);
  if (f.last) text.push('up to', f.last);
  if (o.to?.length) text.push('to', o.to.join(', '));
  return visible(text.filter(Boolean).join(' '));
}

// name is an operation in words, with a capital letter.
const name = (o) => o.action[0].toUpperCase() + o.action.slice(1) + ' ' + selection(o);

const rates = [10, 100, 1000];

// What a plan found, as a question.
function question(plan, body, rate) {
  const n = plan.matches;
  const each = Object.entries(plan.consumers).map(([name, jobs]) => `${count(jobs)} ${body.action === 'replay' ? 'for' : 'of'} ${name}`);
  const time = Math.ceil(n / rate);
  return html`<b>${plan.more ? `More than ${count(n - 1)} ${nouns[body.action]}s` : plural(n, nouns[body.action])}</b> ${n === 1 ? 'is' : 'are'} ${done[body.action]}: ${selection(body)}.
    ${(each.length > 1 || body.action === 'replay') && html`<span class="sub">${body.action === 'replay' ? 'New jobs: ' : ''}${each.slice(0, 6).join(', ')}${each.length > 6 ? ', and others' : ''}.</span>`}
    ${body.action === 'redrive' && html`<span class="sub">Each run begins anew with its first step. Steps that succeeded are called again.</span>`}
    ${plan.skipped > 0 && html`<span class="sub">${plural(plan.skipped, 'match', 'matches')} cannot be changed now, and ${plan.skipped === 1 ? 'is' : 'are'} left alone.</span>`}
    <span class="sub">It takes about ${span(Math.max(time, 1))} at ${plural(rate, nouns[body.action])} a second, and goes on if this page is closed.</span>`;
}

// Bulk is a button that begins an operation on all that a filter selects, and goes to it. It first
// plans it, so that the question names the number. filter is a function, which is called when the
// person asks: times before now are exact from then on.
export function Bulk({ label, action, filter, receivers, danger }) {
  const [rate, setRate] = useState(100);
  const [one, setOne] = useState('');
  const planned = useRef();
  const ask = async () => {
    const body = { action, filter: filter(), rate };
    if (one) body.to = [one];
    const plan = await change('operations', { ...body, dry_run: true });
    planned.current = { body, n: plan.more ? '' : String(plan.matches) };
    return plan.matches ? question(plan, body, rate) : { none: `Nothing matches now: ${selection(body)}.` };
  };
  const act = async () => {
    const o = await change('operations', planned.current.body);
    go([...path, o.id], { of: planned.current.n });
    return 'The operation has begun.';
  };
  return html`<${Confirm} label=${label} danger=${danger} about=${rate + one} ask=${ask} act=${act}>
    ${receivers && html`<${Receivers} of=${receivers} is=${one} set=${setOne} />`}
    <label>At most, in a second<select name="rate" onChange=${(e) => setRate(Number(e.target.value))}>${rates.map((r) => html`<option value=${r} selected=${r === rate}>${r}</option>`)}</select></label>
  <//>`;
}

// useTopology returns the topology, for a person who may replay and send events; undefined before it is known.
export function useTopology() {
  const may = useMay('operate');
  return useRead(async () => (may ? read('topology') : undefined), []).data;
}

// receivers returns the names of the consumers of a source, or of all sources.
export const receivers = (topology, source) => (topology?.consumers || []).filter((c) => !source || c.source === source).map((c) => c.name);

// Receivers is the choice of the consumer of a replay. of are names of consumers.
export const Receivers = ({ of, is, set }) => html`<label>For<select name="to" onChange=${(e) => set(e.target.value)}><option value="" selected=${!is}>all that want it</option>${of.map((n) => html`<option value=${n} selected=${n === is}>${n}</option>`)}</select></label>`;

const counts = (o) => `${count(o.acted)} ${done[o.action]}${o.skipped ? `, ${count(o.skipped)} left alone` : ''}`;

export function Operations({ params }) {
  const { data, error, busy, again } = useRead(() => read('operations', { after: params.after, limit: 50 }), [params.after], params.after ? 0 : 3000);
  return html`<${Page} title="Operations">
    <${Problem} error=${error} again=${again} />
    <${Table} caption="Operations, newest first" rows=${data?.operations} busy=${busy} empty="No operation was begun lately. Choose jobs, events or runs by a filter, then retry, cancel, replay or redrive all that match." link=${(r) => to([...path, r.id])} columns=${[
      { name: 'Operation', class: 'text', cell: name },
      { name: 'State', class: 'short', cell: (r) => html`<${Status} is=${r.state} />` },
      { name: 'Done', class: 'short', cell: counts },
      { name: 'By', cell: (r) => r.by || '–' },
      { name: 'Started', class: 'short', cell: (r) => html`<${Ago} t=${r.created_at} />` },
    ]} />
    <${Pager} path=${path} params=${params} next=${data?.next} />
  <//>`;
}

const parse = (t) => new Date(t + 'Z').getTime();

// speed says how many matches an operation acted on in a second; "" before it is known.
function speed(o) {
  const seconds = o.started_at ? ((o.finished_at ? parse(o.finished_at) : Date.now()) - parse(o.started_at)) / 1000 : 0;
  return seconds >= 1 ? `, ${count(Math.round(o.acted / seconds))} so far` : '';
}

// Progress shows how far an operation is. of is the number of matches at its beginning, 0 if that is
// not known.
function Progress({ o, of }) {
  const n = o.acted + o.skipped;
  const running = o.state === 'running';
  const all = running ? of : Math.max(n, 1);
  return html`<div class="progress">
    ${running && !of ? html`<progress aria-label="Progress"></progress>` : html`<progress aria-label="Progress" max=${Math.max(all, n, 1)} value=${running ? n : o.state === 'finished' ? all : n}></progress>`}
    <p><strong>${counts(o)}</strong>${running && of > 0 ? ` of ${count(of)}` : ''}; ${plural(o.looked, nouns[o.action])} looked at</p>
  </div>`;
}

// matches returns the address of the listing of what an operation selects; null if there is none.
function matches(o) {
  const f = o.filter;
  if (o.action === 'replay') return { href: to(['events'], { source: f.source, type: f.event_type, match: f.match, delivery_id: f.delivery_id }), text: 'Events' };
  if (o.action === 'redrive') return { href: to(['runs'], { workflow: f.consumer?.replace('workflow/', ''), status: f.status }), text: 'Workflow runs' };
  return { href: to(['jobs'], { handler: f.consumer, status: f.status }), text: 'Jobs' };
}

export function Operation({ id, params }) {
  const running = useRef(true);
  const may = useMay('operate');
  const { data: o, error, again } = useRead(async () => {
    const got = await read('operations/' + encodeURIComponent(id));
    running.current = got.state === 'running';
    return got;
  }, [id], running.current ? 1000 : 0);
  const back = { href: to(path), text: 'Operations' };
  if (!o) return html`<${Page} title="Operation" back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const actions = may && o.state === 'running' && html`<${Confirm} label="Cancel" danger done=${again} ask=${async () => `The operation ends after the matches that are being changed. What it did stays done: ${counts(o)}.`}
    act=${async () => { await change(`operations/${id}/cancel`); return 'The operation is canceled.'; }} />`;
  const list = matches(o);
  return html`<${Page} title=${name(o)} back=${back} actions=${actions}>
    <${Problem} error=${error} again=${again} />
    ${o.error && html`<div class="problem" role="alert"><strong>${visible(o.error)}</strong></div>`}
    <section class="card">
      <p role="status" class="state"><${Status} is=${o.state} /></p>
      <${Progress} o=${o} of=${Number(params.of) || 0} />
    </section>
    <section class="card"><${Facts} of=${[
      ['Rate', `${o.rate ? `at most ${count(o.rate)} a second` : 'as fast as the database takes it'}${speed(o)}`], ['By', o.by || 'a token without a name'],
      ['Started', html`<${Exact} t=${o.created_at} />`], ['Finished', o.finished_at && html`<${Exact} t=${o.finished_at} />`], ['Those that match now', html`<a href=${list.href}>${list.text}</a>`], ['Id', html`<${Id} id=${o.id} />`],
    ]} /></section>
  <//>`;
}
