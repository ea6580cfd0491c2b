// Lines: those of a consumer, and one line with the jobs that hold it and that wait.
import { html } from './lib.js';
import { change, read, useRead } from './api.js';
import { to } from './place.js';
import { visible } from './json.js';
import { Ago, Confirm, Count, count, Exact, Facts, Filters, Page, Pager, plural, Problem, Status, Table } from './ui.js';
import { JobTable } from './jobs.js';

const path = ['lines'];

const where = (consumer, key) => to(path, { consumer, key });

// Skip lets a line go on without the dead job that stops it.
export const Skip = ({ job, line, done }) => html`<${Confirm} label="Skip" done=${done} ask=${async () => `Line ${visible(line)} goes on without this job, which stays dead.`}
  act=${async () => { await change(`jobs/${encodeURIComponent(job)}/skip`); return 'The line goes on.'; }} />`;

// Lines shows the lines of a consumer, or one of them if the address names its key.
export function Lines({ params, stats }) {
  return params.key === undefined ? html`<${List} params=${params} stats=${stats} />` : html`<${Line} consumer=${params.consumer || ''} name=${params.key} />`;
}

function List({ params, stats }) {
  const topology = useRead(() => read('topology'), [], 30000);
  const now = stats.data;
  const stopped = new Map(now && [...now.handlers.map((h) => [h.name, h.lines_stopped]), ...now.queues.map((q) => ['queue/' + q.name, q.lines_stopped])]);
  const all = now && topology.data?.consumers.filter((c) => c.lines).map((c) => ({ ...c, stopped: stopped.get(c.name) || 0 }));
  // Without a choice it is the first consumer with a stopped line.
  const consumer = params.consumer || (all?.find((c) => c.stopped) || all?.[0])?.name;
  const { data, error, again } = useRead(async () => (consumer ? { consumer, ...(await read('lines', { consumer, after: params.after, limit: 50 })) } : null), [consumer, params.after], params.after ? 0 : 3000);
  const rows = data?.consumer === consumer ? data?.lines.map((l) => ({ ...l, id: l.key })) : undefined;
  const rules = all?.find((c) => c.name === consumer)?.lines;
  if (all && !all.length && !consumer) return html`<${Page} title="Lines"><p class="empty">No consumer has lines. With <code>lines</code> in its configuration, the jobs with the same key are done one after the other. See <a href=${to(['manual', 'pace-and-order'], { at: 'lines' })}>the manual</a>.</p><//>`;
  return html`<${Page} title="Lines">
    <${Filters} path=${path} params=${{ ...params, consumer }} fields=${[
      { name: 'consumer', label: 'Consumer', wide: true, options: (all || []).map((c) => [c.name, c.stopped ? `${c.name} (${plural(c.stopped, 'line')} stopped)` : c.name]) },
    ]} />
    <${Problem} error=${error || topology.error || stats.error} again=${again} />
    ${rules && html`<p class="muted">The jobs with the same <code>${rules.key}</code> are in one line: ${rules.limit === 1 ? 'one at a time' : `${rules.limit} at a time`}. A dead job ${rules.on_dead === 'skip' ? 'is skipped' : 'stops its line, until it is retried or skipped'}. Idle lines are not listed.</p>`}
    <${Table} caption="Lines" rows=${rows} empty="No line has a job." link=${(r) => where(consumer, r.key)} columns=${[
      { name: 'Line', class: 'text', cell: (r) => visible(r.key) },
      { name: 'State', class: 'short', cell: (r) => html`<${Status} is=${r.stopped_since ? 'stopped' : 'running'} />` },
      { name: 'With a slot', class: 'n', cell: (r) => html`<${Count} n=${r.admitted} />` },
      { name: 'Waiting', class: 'n', cell: (r) => html`<${Count} n=${r.waiting} />` },
      { name: 'Stopped', class: 'short', cell: (r) => (r.stopped_since ? html`<${Ago} t=${r.stopped_since} />` : '–') },
      { name: 'By', cell: (r) => (r.stopped_by ? html`<a href=${to(['jobs', r.stopped_by])}>a dead job</a>` : '–') },
      { name: '', cell: (r) => (r.stopped_by ? html`<${Skip} job=${r.stopped_by} line=${r.key} done=${again} />` : '') },
    ]} />
    <${Pager} path=${path} params=${{ ...params, consumer }} next=${data?.has_more && rows?.length && rows[rows.length - 1].key} />
  <//>`;
}

function Line({ consumer, name }) {
  const { data, error, again } = useRead(() => read('lines/inspect', { consumer, key: name }), [consumer, name], 3000);
  const back = { href: to(path, { consumer }), text: 'Lines of ' + consumer };
  // A line whose jobs are all done is gone.
  if (error?.status === 404) return html`<${Page} title=${visible(name)} back=${back}><p class="empty">This line has no jobs.</p><//>`;
  if (!data) return html`<${Page} title=${visible(name)} back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const stopped = data.stopped_by;
  return html`<${Page} title=${visible(name)} back=${back} actions=${stopped && html`<${Skip} job=${stopped} line=${name} done=${again} />`}>
    <${Problem} error=${error} />
    ${stopped && html`<p class="note">${plural(data.waiting, 'job')} of this line ${data.waiting === 1 ? 'waits' : 'wait'} since <${Exact} t=${data.stopped_since} /> for <a href=${to(['jobs', stopped])}>a dead job</a>. The line goes on when the job is retried and succeeds, or when it is skipped.</p>`}
    <section class="card"><${Facts} of=${[['State', html`<${Status} is=${stopped ? 'stopped' : 'running'} />`], ['Consumer', html`<a href=${to(['jobs'], { handler: consumer })}>${consumer}</a>`], ['With a slot', count(data.admitted)], ['Waiting', data.waiting >= 1000 ? '1,000 or more' : count(data.waiting)]]} /></section>
    <section><h2>With a slot</h2><${JobTable} caption="Jobs with a slot" rows=${data.jobs} empty="No job has a slot." /></section>
    <section><h2>Next in line</h2><${JobTable} caption="Jobs that wait" rows=${data.next} empty="No job waits." /></section>
  <//>`;
}
