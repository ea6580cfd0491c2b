// Workflow runs: the listing, and one run with its steps and its history.
import { html } from './lib.js';
import { change, read, readText, useRead } from './api.js';
import { to } from './place.js';
import { elements, member, visible } from './json.js';
import { Ago, Confirm, Exact, Facts, Filters, Id, Json, Page, Pager, Problem, since, spans, Status, Table } from './ui.js';

const path = ['runs'];

export const RunTable = ({ rows, busy, empty }) => html`<${Table} caption="Workflow runs" rows=${rows} busy=${busy} empty=${empty} link=${(r) => to(['runs', r.id])} columns=${[
  { name: 'Workflow', cell: (r) => r.workflow },
  { name: 'Status', class: 'short', cell: (r) => html`<${Status} is=${r.status} />` },
  { name: 'Step', class: 'text', cell: (r) => r.current_step || '–' },
  { name: 'Began', class: 'short', cell: (r) => html`<${Ago} t=${r.created_at} />` },
  { name: 'Error', class: 'text', cell: (r) => (r.error ? visible(r.error) : '') },
  { name: 'Id', cell: (r) => html`<${Id} id=${r.id} />` },
]} />`;

export function Runs({ params, stats }) {
  const { data, error, busy, again } = useRead(() => read('workflow-runs', { workflow: params.workflow, status: params.status, since: since(params.since), after: params.after, limit: 50 }), [JSON.stringify(params)], params.after ? 0 : 3000);
  const rows = data?.workflow_runs;
  return html`<${Page} title="Workflow runs">
    <${Filters} path=${path} params=${params} fields=${[
      { name: 'workflow', label: 'Workflow', options: [['', 'all'], ...(stats.data?.workflows || []).map((w) => [w.name, w.name])] },
      { name: 'status', label: 'Status', options: [['', 'all'], ...['pending', 'running', 'completed', 'failed', 'canceled'].map((s) => [s, s])] },
    ]} />
    <${Problem} error=${error} again=${again} />
    <${RunTable} rows=${rows} busy=${busy} empty="No run matches. An event that a workflow wants begins a run." />
    <${Pager} path=${path} params=${params} next=${data?.has_more && rows[rows.length - 1].id} />
  <//>`;
}

// story reads a run. The inputs and outputs of its steps are texts.
async function story(id) {
  const text = await readText('workflow-runs/' + encodeURIComponent(id));
  const run = JSON.parse(text);
  elements(member(text, 'steps') || '[]').forEach((s, i) => Object.assign(run.steps[i], { input: member(s, 'input'), output: member(s, 'output') }));
  return run;
}

export function Run({ id }) {
  const { data, error, again } = useRead(() => story(id), [id], 3000);
  const back = { href: to(path), text: 'Workflow runs' };
  if (!data) return html`<${Page} title="Workflow run" back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const over = ['completed', 'failed', 'canceled'].includes(data.status);
  const actions = html`${(data.status === 'failed' || data.status === 'canceled') && html`<${Confirm} label="Redrive" done=${again} ask=${async () => 'The run goes on where it ended. Steps that succeeded are not repeated.'} act=${async () => { await change(`workflow-runs/${id}/redrive`); return 'The run goes on.'; }} />`}
    ${!over && html`<${Confirm} label="Cancel" danger done=${again} ask=${async () => 'The run ends, and begins no further step.'} act=${async () => { await change(`workflow-runs/${id}/cancel`); return 'The run is canceled.'; }} />`}`;
  return html`<${Page} title=${data.workflow} back=${back} actions=${actions}>
    <${Problem} error=${error} />
    <section class="card"><${Facts} of=${[
      ['Status', html`<${Status} is=${data.status} />`], ['Event', html`<a href=${to(['events', data.event_id])}><${Id} id=${data.event_id} /></a>`], ['Began', html`<${Exact} t=${data.created_at} />`],
      ['Finished', data.completed_at && html`<${Exact} t=${data.completed_at} />`], ['Round', data.epoch], ['Id', html`<${Id} id=${data.id} />`], ['Error', data.error && visible(data.error)],
    ]} /></section>
    <section><h2>Steps</h2><ol class="tries">${(data.steps || []).map((s) => html`<li key=${s.path + s.started_at}>
      <div class="line"><strong>${s.path}</strong><${Status} is=${s.status} /><span class="muted">${s.type}</span>${s.attempt > 1 && html`<span>attempt ${s.attempt}</span>`}<span class="muted">${s.started_at && html`<${Exact} t=${s.started_at} />`}</span></div>
      ${s.error && html`<p>${visible(s.error)}</p>`}
      <details><summary>Input and output</summary><h3>Input</h3><${Json} text=${s.input} label="Input" /><h3>Output</h3><${Json} text=${s.output} label="Output" /></details>
    </li>`)}</ol></section>
    ${data.history && html`<section class="card"><details><summary>History</summary><ol>${data.history.map((e) => html`<li><span class="muted"><${Exact} t=${e.at} /></span> ${e.type}${e.step && ' ' + e.step}</li>`)}</ol></details></section>`}
    ${data.has_more && html`<p class="note">The run has more steps than are shown here.</p>`}
  <//>`;
}
