// Workflow runs: the listing, and one run with its graph, its steps and its history.
import { html, useEffect, useRef, useState } from './lib.js';
import { change, read, readText, useRead } from './api.js';
import { to } from './place.js';
import { elements, member, visible } from './json.js';
import { Ago, Confirm, count, Exact, Facts, Filters, focusOn, Id, Json, Page, Pager, plural, Problem, span, Status, Table } from './ui.js';
import { Graph, tally } from './graph.js';
import { Bulk } from './operations.js';

const path = ['runs'];

export const RunTable = ({ rows, busy, empty }) => html`<${Table} caption="Workflow runs" rows=${rows} busy=${busy} empty=${empty} link=${(r) => to(['runs', r.id])} columns=${[
  { name: 'Workflow', cell: (r) => r.workflow },
  { name: 'Status', class: 'short', cell: (r) => html`<${Status} is=${r.status} />` },
  { name: 'Step', class: 'text', cell: (r) => r.current_step || '–' },
  { name: 'Started', class: 'short', cell: (r) => html`<${Ago} t=${r.created_at} />` },
  { name: 'Error', class: 'text', cell: (r) => (r.error ? visible(r.error) : '') },
  { name: 'Id', cell: (r) => html`<${Id} id=${r.id} />` },
]} />`;

// AllRuns redrives all runs that the listing selects, of a status in which a run can be redriven.
function AllRuns({ params: { workflow, status } }) {
  if (status && status !== 'failed' && status !== 'canceled') return null;
  return html`<${Bulk} label=${status ? 'Redrive all that match' : 'Redrive failed runs'} action="redrive" filter=${() => ({ status: status || 'failed', ...(workflow && { consumer: 'workflow/' + workflow }) })} />`;
}

export function Runs({ params, stats }) {
  const { data, error, busy, again } = useRead(() => read('workflow-runs', { workflow: params.workflow, status: params.status, after: params.after, limit: 50 }), [JSON.stringify(params)], params.after ? 0 : 3000);
  const rows = data?.workflow_runs;
  return html`<${Page} title="Workflow runs" actions=${html`<${AllRuns} params=${params} />`}>
    <${Filters} path=${path} params=${params} fields=${[
      { name: 'workflow', label: 'Workflow', options: [['', 'all'], ...(stats.data?.workflows || []).map((w) => [w.name, w.name])] },
      { name: 'status', label: 'Status', options: [['', 'all'], ...['pending', 'running', 'completed', 'failed', 'canceled'].map((s) => [s, s])] },
    ]} />
    <${Problem} error=${error} again=${again} />
    <${RunTable} rows=${rows} busy=${busy} empty="No run matches. An event that a workflow wants begins a run." />
    <${Pager} path=${path} params=${params} next=${data?.has_more && rows[rows.length - 1].id} />
  <//>`;
}

// seconds between two times of the API.
const between = (from, until) => (new Date(until + 'Z') - new Date(from + 'Z')) / 1000;
const took = (s) => (s.started_at && s.completed_at && s.attempt ? span(between(s.started_at, s.completed_at)) : '–');

// then says in words to which steps a step leads.
function then(g, s) {
  const names = new Map(g.steps.map((x) => [x.key, x.name]));
  return g.ways.filter((w) => w.from === s.key).map((w) => names.get(w.to) + (w.label ? ` (${visible(w.label)})` : '')).join(', ') || '–';
}

// StepTable is the graph as a table: for narrow windows, and for people who do not see the drawing.
function StepTable({ g, link }) {
  const depth = new Map();
  for (const s of g.steps) depth.set(s.key, s.within === null ? 0 : (depth.get(s.within) || 0) + 1);
  return html`<${Table} caption="Steps of the definition" rows=${g.steps.map((s) => ({ ...s, key: s.key }))} empty="The run has not come to a step yet." columns=${[
    { name: 'Step', cell: (s) => html`<span class=${'deep' + Math.min(depth.get(s.key), 5)}>${s.path ? html`<a class="open" href=${link(s)}>${s.name}</a>` : s.name}${s.branch && s.branch !== s.name && html`<span class="sub">branch ${s.branch}</span>`}${s.on_failure && html`<span class="sub">if the run fails</span>`}</span>` },
    { name: 'Status', class: 'short', cell: (s) => html`${s.status ? html`<${Status} is=${s.status} />` : html`<span class="muted">not reached</span>`}${tally(s) && html`<span class="sub">${tally(s)}</span>`}` },
    { name: 'Type', class: 'short', cell: (s) => html`${s.type}${s.note && html`<span class="sub">${visible(s.note)}</span>`}` },
    { name: 'Attempt', class: 'n', cell: (s) => (s.status ? s.attempt : '–') },
    { name: 'Took', class: 'n', cell: took },
    { name: 'Leads to', class: 'text', cell: (s) => then(g, s) },
    { name: 'Error', class: 'text', cell: (s) => (s.error ? visible(s.error) : '') },
  ]} />`;
}

// one reads a step. Its input and output are texts.
async function one(id, step) {
  const text = await readText(`workflow-runs/${encodeURIComponent(id)}/step`, { path: step });
  return { ...JSON.parse(text), input: member(text, 'input'), output: member(text, 'output') };
}

// Step shows one step of the run with its input and output.
function Step({ id, step, seq }) {
  const { data, error, again } = useRead(() => one(id, step), [id, step, seq]);
  const section = useRef();
  useEffect(() => focusOn(section.current, section.current), [step]);
  return html`<section class="card" ref=${section} tabindex="-1" aria-label=${'Step ' + step}>
    <div class="head"><h2>Step ${step}</h2><a href=${to(['runs', id])}>Close</a></div>
    <${Problem} error=${error} again=${again} />
    ${data && html`<${Facts} of=${[
      ['Status', html`<${Status} is=${data.status} />`], ['Type', data.type], ['Attempt', data.attempt], ['Started', data.started_at && html`<${Exact} t=${data.started_at} />`], ['Took', took(data)],
      ['Attempts and replies', data.job_id && html`<a href=${to(['jobs', data.job_id])}>of its job</a>`], ['Error', data.error && visible(data.error), true],
    ]} />
    <div class="pair"><div><h3>Input</h3><${Json} text=${data.input} label="Input" /></div><div><h3>Output</h3>${data.output === 'null' ? html`<p class="muted">${data.completed_at ? 'None.' : 'None yet.'}</p>` : html`<${Json} text=${data.output} label="Output" />`}</div></div>`}
  </section>`;
}

// page reads one page of the steps and the history of a run.
async function page(id, after) {
  const text = await readText('workflow-runs/' + encodeURIComponent(id), { limit: 50, after });
  const run = JSON.parse(text);
  elements(member(text, 'steps') || '[]').forEach((s, i) => Object.assign(run.steps[i], { input: member(s, 'input'), output: member(s, 'output') }));
  return run;
}

// Story shows the steps in the order in which the run came to them, and then the history, in pages. It
// is read once it is opened, since it has inputs and outputs.
function Story({ id, params, seq }) {
  const [open, put] = useState(Boolean(params.after));
  const { data, error, again } = useRead(async () => (open ? page(id, params.after) : null), [id, params.after, seq, open]);
  return html`<section class="card"><details open=${open} onToggle=${(e) => put(e.target.open)}><summary>Every step and the history, in order</summary>
    <${Problem} error=${error} again=${again} />
    ${data && html`<div class="page">
      ${data.steps.length > 0 && html`<ol class="tries">${data.steps.map((s) => html`<li key=${s.path}>
        <div class="line"><strong>${s.path}</strong><${Status} is=${s.status} /><span class="muted">${s.type}</span>${s.attempt > 1 && html`<span>attempt ${s.attempt}</span>`}<span class="muted">${s.started_at && html`<${Exact} t=${s.started_at} />`}</span></div>
        ${s.error && html`<p>${visible(s.error)}</p>`}
        <details><summary>Input and output</summary><h3>Input</h3><${Json} text=${s.input} label="Input" /><h3>Output</h3><${Json} text=${s.output} label="Output" /></details>
      </li>`)}</ol>`}
      ${data.history.length > 0 && html`<${Table} caption="History" rows=${data.history.map((e) => ({ key: e.seq, ...e }))} columns=${[
        { name: 'Time', class: 'short', cell: (e) => html`<${Exact} t=${e.at} />` },
        { name: 'What', class: 'short', cell: (e) => e.type.replaceAll('_', ' ') },
        { name: 'Step', class: 'text', cell: (e) => e.step || 'the run' },
        { name: 'Round', class: 'n', cell: (e) => e.epoch },
        { name: 'Details', class: 'text', cell: (e) => e.data && html`<code>${visible(JSON.stringify(e.data))}</code>` },
      ]} />`}
      ${(data.has_more || params.after) && html`<nav class="pager" aria-label="Pages of steps and history">
        ${params.after ? html`<a href=${to(['runs', id])}>From the beginning</a>` : html`<span></span>`}
        ${data.has_more ? html`<a href=${to(['runs', id], { after: data.next })}>Further</a>` : html`<span class="muted">This is the end</span>`}
      </nav>`}
    </div>`}
  </details></section>`;
}

// Changes are the buttons of a run. Each question says what becomes of the run.
function Changes({ g, done }) {
  const redrive = (from, said) => async () => { await change(`workflow-runs/${g.id}/redrive`, { from }); done(); return said; };
  if (g.status === 'failed' || g.status === 'canceled') return html`
    <${Confirm} label="Redrive" ask=${async () => `Run ${g.id} of ${g.workflow} goes on where it ended${g.current_step ? ', at ' + g.current_step : ''}. Steps that succeeded are not repeated. It follows the definition that it has.`} act=${redrive('failed', 'The run goes on.')} />
    <${Confirm} label="Redrive from the start" ask=${async () => `Run ${g.id} of ${g.workflow} begins anew with its first step. Its ${plural(g.steps.filter((s) => s.status === 'succeeded').length, 'step')} that succeeded are called again.`} act=${redrive('start', 'The run begins anew.')} />`;
  if (g.status === 'completed') return null;
  const open = g.steps.filter((s) => s.counts.running || s.counts.ready || s.counts.waiting).map((s) => s.name);
  return html`<${Confirm} label="Cancel" danger ask=${async () => `Run ${g.id} of ${g.workflow} ends as canceled${open.length ? ', at ' + open.join(', ') : ''}. No further step begins. A call that is under way is not called back. The run can be redriven.`}
    act=${async () => { await change(`workflow-runs/${g.id}/cancel`); done(); return 'The run is canceled.'; }} />`;
}

export function Run({ id, params }) {
  const [every, pace] = useState(3000);
  const { data: g, error, again } = useRead(async () => {
    const got = await read(`workflow-runs/${encodeURIComponent(id)}/graph`);
    // A graph of thousands of executions is read less often, and one of a run that ended, too.
    pace(got.steps.reduce((n, s) => n + s.executions, 0) > 1000 ? 15000 : got.completed_at ? 5000 : 1000);
    return got;
  }, [id], every);
  const back = { href: to(path), text: 'Workflow runs' };
  if (!g) return html`<${Page} title="Workflow run" back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const link = (s) => to(['runs', id], { step: s.path });
  return html`<${Page} title=${g.workflow} back=${back} actions=${html`<${Changes} g=${g} done=${again} />`}>
    <${Problem} error=${error} />
    <section class="card"><${Facts} of=${[
      ['Status', html`<${Status} is=${g.status} />`], ['Event', html`<a href=${to(['events', g.event_id])}><${Id} id=${g.event_id} /></a>`], ['Started', html`<${Exact} t=${g.created_at} />`],
      ['Finished', g.completed_at && html`<${Exact} t=${g.completed_at} />`], ['Round', g.epoch > 1 && count(g.epoch)], ['Id', html`<${Id} id=${g.id} />`], ['Error', g.error && visible(g.error), true],
    ]} /></section>
    ${g.definition_changed && html`<p class="note">The configuration has another definition of ${g.workflow} by now. This run follows the one that it has, which is shown here.</p>`}
    ${g.undrawn ? html`<p class="note">The definition of this run cannot be drawn: ${visible(g.undrawn)}. These are the steps that the run has come to.</p>` : html`<${Graph} g=${g} link=${link} chosen=${params.step} />`}
    ${params.step && html`<${Step} id=${id} step=${params.step} seq=${g.seq} />`}
    <section><h2>Steps</h2><${StepTable} g=${g} link=${link} /></section>
    <${Story} id=${id} params=${params} seq=${g.seq} />
  <//>`;
}
