// Jobs: the listing, failures grouped by error, and one job with its attempts.
import { html } from './lib.js';
import { change, read, useRead } from './api.js';
import { to } from './place.js';
import { visible } from './json.js';
import { Attempts } from './attempts.js';
import { Skip } from './lines.js';
import { Bulk } from './operations.js';
import { Ago, Confirm, Count, count, Exact, Facts, Filters, Id, Page, Pager, plural, Problem, since, spans, Status, Table } from './ui.js';

const path = ['jobs'];

const statuses = ['available', 'scheduled', 'waiting', 'running', 'retryable', 'dead', 'canceled', 'completed'];

// waits says why a job waits.
function waits(w) {
  if (!w) return '';
  const until = w.until ? html` until <${Exact} t=${w.until} />` : '';
  const text = {
    hold: w.source ? `the hold of source ${w.source}` : 'the hold', circuit_breaker: 'the circuit breaker', rate_limit: 'the rate limit', time: 'its time', line: 'its line',
    worker: 'a free worker', consumer: 'a consumer of the queue', configuration: 'its consumer, which is not configured any more',
  }[w.for] || w.for;
  return html`waits for ${text}${until}${w.place ? `, place ${count(w.place)}` : ''}${w.job && html` behind <a href=${to(['jobs', w.job])}>a job</a>`}${w.reason && html`: ${w.reason}`}`;
}

// cause links to what a job was made for: an event, or an operation.
const cause = (j) => html`<a href=${to([j.handler.startsWith('operation/') ? 'operations' : 'events', j.event_id])}><${Id} id=${j.event_id} /></a>`;

// consumer says of whom a job is: a workflow and the step, or a name and the line.
function consumer(j) {
  if (j.step) return html`${j.handler.slice(0, -j.step.length - 1)}<span class="sub">${j.step}</span>`;
  return j.line ? html`${j.handler}<span class="sub">line ${j.line}</span>` : j.handler;
}

const tries = (j) => (j.max_attempts === null ? String(j.attempt) : `${j.attempt} of ${j.max_attempts}`);

// JobTable lists jobs. With retried, which is called after each, dead ones can be retried here.
export function JobTable({ rows, empty, busy, event = true, caption = 'Jobs', retried }) {
  return html`<${Table} caption=${caption} rows=${rows} busy=${busy} empty=${empty} link=${(r) => to(['jobs', r.id])} columns=${[
    { name: 'Consumer', class: 'text', cell: consumer },
    { name: 'Status', class: 'short', cell: (r) => html`<${Status} is=${r.status} />` },
    { name: 'Attempts', class: 'n', cell: tries },
    { name: 'Created', class: 'short', cell: (r) => html`<${Ago} t=${r.created_at} />` },
    { name: 'Last error, or why it waits', class: 'text', cell: (r) => html`${r.last_error ? visible(r.last_error) : ''}${r.waiting && html`<span class="sub">${waits(r.waiting)}</span>`}` },
    ...(event ? [{ name: 'Event', cell: (r) => cause(r) }] : []),
    ...(retried ? [{ name: '', cell: (r) => r.status === 'dead' && retryable(r) && html`<${Retry} id=${r.id} done=${retried} />` }] : []),
  ]} />`;
}

// consumers returns the choices of a field for a consumer.
export function consumers(stats) {
  if (!stats) return [];
  return [...stats.handlers.map((h) => h.name), ...stats.queues.map((q) => 'queue/' + q.name), ...stats.workflows.map((w) => 'workflow/' + w.name)].map((n) => [n, n]);
}

const tabs = (now) => html`<nav class="tabs" aria-label="Views of jobs"><a href=${to(['jobs'])} aria-current=${now === 'jobs' ? 'page' : undefined}>All jobs</a><a href=${to(['failures'])} aria-current=${now === 'failures' ? 'page' : undefined}>By error</a></nav>`;

// ofEvent returns the fields of a search that no index knows: they are about the event, and the last error.
const ofEvent = ({ source, type, error }) => ({ ...(source && { source }), ...(type && { event_type: type }), ...(error && { error }) });

// AllJobs are the changes of all jobs that a listing selects.
function AllJobs({ params }) {
  const { status, handler } = params;
  if (handler?.startsWith('workflow/')) return null; // steps are left alone: their runs are redriven
  const filter = (s) => () => ({ status: s, ...(handler && { consumer: handler }), ...(params.since && { since: since(params.since) }), ...ofEvent(params) });
  if (!status) return html`<${Bulk} label="Retry dead jobs" action="retry" filter=${filter('dead')} />`;
  if (status === 'dead' || status === 'canceled') return html`<${Bulk} label="Retry all that match" action="retry" filter=${filter(status)} />`;
  if (['available', 'scheduled', 'waiting', 'retryable'].includes(status)) return html`<${Bulk} label="Cancel all that match" danger action="cancel" filter=${filter(status)} />`;
  return null;
}

export function Jobs({ params, stats }) {
  const search = ofEvent(params);
  const searched = Object.keys(search).length > 0;
  const { data, error, busy, again } = useRead(() => read('jobs', { status: params.status, handler: params.handler, since: since(params.since), ...search, after: params.after, limit: 50 }), [JSON.stringify(params)], params.after ? 0 : searched ? 10000 : 3000);
  const rows = data?.jobs;
  return html`<${Page} title="Jobs" actions=${html`<${AllJobs} params=${params} />`}>
    ${tabs('jobs')}
    <${Filters} path=${path} params=${params} fields=${[
      { name: 'status', label: 'Status', options: [['', 'all'], ...statuses.map((s) => [s, s])] },
      { name: 'handler', label: 'Consumer', options: [['', 'all'], ...consumers(stats.data)] },
      { name: 'since', label: 'Created', options: spans },
      { name: 'source', label: 'Source' },
      { name: 'type', label: 'Event type' },
      { name: 'error', label: 'Error contains', wide: true },
    ]} />
    <${Problem} error=${error} again=${again} />
    ${searched && data && html`<p class="muted">${plural(data.scanned, 'job was', 'jobs were')} looked at${data.has_more ? '. There are older ones' : ''}.</p>`}
    <${JobTable} rows=${rows} busy=${busy} empty="No job matches." />
    <${Pager} path=${path} params=${params} next=${searched ? data?.next : data?.has_more && rows[rows.length - 1].id} />
  <//>`;
}

// common returns the filter for errors of a kind: the longest part that they have in common, which a kind
// has between its placeholders.
function common(kind) {
  const part = (kind || '').split(/<(?:id|n|address|time|duration)>/).reduce((a, b) => (b.length > a.length ? b : a), '').trim();
  return part ? { error: part } : {};
}

export function Failures({ params, stats }) {
  const { data, error, busy, again } = useRead(() => read('jobs/errors', { handler: params.handler, since: since(params.since) }), [JSON.stringify(params)], 10000);
  const rows = data?.errors.map((e, i) => ({ key: e.handler + i, ...e }));
  return html`<${Page} title="Failures" actions=${html`<${AllJobs} params=${params} />`}>
    ${tabs('failures')}
    <${Filters} path=${['failures']} params=${params} fields=${[
      { name: 'handler', label: 'Consumer', options: [['', 'all'], ...consumers(stats.data)] },
      { name: 'since', label: 'Created', options: spans },
    ]} />
    <${Problem} error=${error} again=${again} />
    ${data?.has_more && html`<p class="note">These are the newest ${count(data.scanned)} failed jobs. There are older ones.</p>`}
    <${Table} caption="Errors of dead and retrying jobs" rows=${rows} busy=${busy} empty="Nothing fails." link=${(r) => to(['jobs', r.example])} columns=${[
      { name: 'Error', class: 'text', cell: (r) => visible(r.kind || r.last_error || 'no error') },
      { name: 'Consumer', cell: (r) => r.handler },
      { name: 'Jobs', class: 'n', cell: (r) => html`<${Count} n=${r.count} />` },
      { name: 'Dead', class: 'n', cell: (r) => html`<${Count} n=${r.dead} />` },
      { name: 'Retrying', class: 'n', cell: (r) => html`<${Count} n=${r.retrying} />` },
      { name: 'Newest', class: 'short', cell: (r) => html`<${Ago} t=${r.newest_at} />` },
      { name: 'Oldest', class: 'short', cell: (r) => html`<${Ago} t=${r.oldest_at} />` },
      { name: '', cell: (r) => (r.dead > 0 && !r.handler.startsWith('workflow/') ? html`<${Bulk} label="Retry these" action="retry" filter=${() => ({ status: 'dead', consumer: r.handler, ...common(r.kind), ...(params.since && { since: since(params.since) }) })} />` : '') },
    ]} />
  <//>`;
}

const retryable = (j) => !j.workflow_run_id && (j.status === 'dead' || j.status === 'canceled' || j.status === 'retryable' || j.status === 'scheduled');

const Retry = ({ id, done }) => html`<${Confirm} label="Retry" done=${done} ask=${async () => 'This job is tried again now.'} act=${async () => { await change(`jobs/${encodeURIComponent(id)}/retry`); return 'The job is tried again.'; }} />`;

// attemptsOf reads all attempts of a job, page by page.
async function attemptsOf(at) {
  const all = [];
  for (let more = true; more;) {
    const page = await read(at + '/attempts', { after: all.length || undefined });
    all.push(...page.attempts);
    more = page.has_more && page.attempts.length > 0;
  }
  return all;
}

export function Job({ id }) {
  const { data, error, again } = useRead(async () => {
    const at = 'jobs/' + encodeURIComponent(id);
    const [job, attempts] = await Promise.all([read(at), attemptsOf(at)]);
    return { ...job, attempts };
  }, [id], 3000);
  const back = { href: to(path), text: 'Jobs' };
  if (!data) return html`<${Page} title="Job" back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const actions = html`${retryable(data) && html`<${Retry} id=${id} done=${again} />`}
    ${data.line && data.status === 'dead' && html`<${Skip} job=${id} line=${data.line} done=${again} />`}`;
  return html`<${Page} title=${data.handler} back=${back} actions=${actions}>
    <${Problem} error=${error} />
    ${data.waiting && html`<p class="note">This job ${waits(data.waiting)}.</p>`}
    <section class="card"><${Facts} of=${[
      ['Status', html`<${Status} is=${data.status} />`], ['Attempts', tries(data)], [data.handler.startsWith('operation/') ? 'Operation' : 'Event', cause(data)],
      ['Created', html`<${Exact} t=${data.created_at} />`], ['Due', data.scheduled_at && !data.completed_at && html`<${Exact} t=${data.scheduled_at} />`], ['Finished', data.completed_at && html`<${Exact} t=${data.completed_at} />`],
      ['Line', data.line && html`<a href=${to(['lines'], { consumer: data.handler, key: data.line })}>${visible(data.line)}</a>`], ['Workflow run', data.workflow_run_id && html`<a href=${to(['runs', data.workflow_run_id])}>${data.step}</a>`], ['Id', html`<${Id} id=${data.id} />`],
      ['Last error', data.last_error && visible(data.last_error), true],
    ]} /></section>
    <section><h2>Attempts</h2><${Attempts} job=${data} rows=${data.attempts} event=${to(['events', data.event_id])} /></section>
  <//>`;
}
