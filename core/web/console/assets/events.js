// Events: the listing with its search, and one event.
import { html, useState } from './lib.js';
import { change, read, readText, useRead } from './api.js';
import { member } from './json.js';
import { to } from './place.js';
import { Ago, Confirm, Exact, Facts, Filters, Id, Json, Page, Pager, plural, Problem, since, spans, Table } from './ui.js';
import { JobTable } from './jobs.js';
import { Bulk, Receivers, receivers, useTopology } from './operations.js';
import { Send } from './send.js';
import { RunTable } from './runs.js';

const path = ['events'];

export function Events({ params, stats }) {
  const [paused, pause] = useState(false);
  const live = !params.after && !params.match && !paused;
  const { data, error, busy, again } = useRead(() => read('events', {
    source: params.source, event_type: params.type, delivery_id: params.delivery_id, match: params.match, since: since(params.since), after: params.after, limit: 50,
  }), [JSON.stringify(params)], live ? 3000 : 0);
  const rows = data?.events;
  const next = data && (params.match ? data.has_more && data.next : data.has_more && rows[rows.length - 1].id);
  const sources = (stats.data?.sources || []).map((s) => [s.name, s.name]);
  const topology = useTopology();
  const filter = () => ({ ...(params.delivery_id && { delivery_id: params.delivery_id }), ...(params.source && { source: params.source }), ...(params.type && { event_type: params.type }), ...(params.match && { match: params.match }), ...(params.since && { since: since(params.since) }) });
  // Without any filter it would replay all.
  const replay = Object.keys(filter()).length > 0 && html`<${Bulk} label="Replay all that match" action="replay" receivers=${receivers(topology, params.source)} filter=${filter} />`;
  return html`<${Page} title="Events" actions=${html`<${Send} topology=${topology} source=${params.source} />${replay}${!params.after && !params.match && html`<button type="button" aria-pressed=${paused} onClick=${() => pause(!paused)}>${paused ? 'Go on' : 'Pause'}</button>`}`}>
    <${Filters} path=${path} params=${params} fields=${[
      { name: 'source', label: 'Source', options: [['', 'all sources'], ...sources] },
      { name: 'type', label: 'Type', placeholder: 'order.created' },
      { name: 'since', label: 'Received', options: spans },
      { name: 'delivery_id', label: 'Delivery id' },
      { name: 'match', label: 'Payload matches', placeholder: '$.customer.id == "c-7"', wide: true },
    ]} />
    <${Problem} error=${error} again=${again} />
    ${params.match && data && html`<p class="muted" role="status">Looked at ${plural(data.scanned, 'event')}; ${plural(rows.length, 'event')} found.${data.has_more ? ' There are older ones to look at.' : ''}</p>`}
    <${Table} caption="Events, newest first" rows=${rows} busy=${busy} empty=${Object.keys(params).length ? 'No event matches.' : 'No event has come in yet.'} link=${(r) => to(['events', r.id])} columns=${[
      { name: 'Type', class: 'text', cell: (r) => r.event_type },
      { name: 'Source', cell: (r) => r.source },
      { name: 'Received', class: 'short', cell: (r) => html`<${Ago} t=${r.created_at} />` },
      ...(rows?.some((r) => r.idempotency_key) ? [{ name: 'Delivery id', class: 'text', cell: (r) => (r.idempotency_key ? html`<code>${r.idempotency_key}</code>` : '–') }] : []),
      { name: 'Id', cell: (r) => html`<${Id} id=${r.id} />` },
    ]} />
    <${Pager} path=${path} params=${params} next=${next} />
  <//>`;
}

// Replay gives an event new jobs, for all consumers that want it or for one.
function Replay({ event, done }) {
  const [one, set] = useState('');
  const names = receivers(useTopology(), event.source);
  return html`<${Confirm} label="Replay" done=${done} about=${one}
    ask=${async () => (one ? `This event gets a new job for ${one}, if ${one} wants it under the configuration of now.` : 'New jobs are made for this event, for each consumer that wants it under the configuration of now.')}
    act=${async () => {
      const r = await change(`events/${event.id}/replay`, one ? { to: [one] } : {});
      return r.jobs ? `${plural(r.jobs, 'job')} made.` : `${one || 'No consumer'} ${one ? 'does not want' : 'wants'} this event.`;
    }}><${Receivers} of=${names} is=${one} set=${set} /><//>`;
}

export function Event({ id }) {
  const [every, pace] = useState(1000);
  const { data, error, again } = useRead(async () => {
    const text = await readText('events/' + encodeURIComponent(id));
    const event = JSON.parse(text);
    // A large event is not read again by itself, and a new one more often: its deliveries are under way.
    pace(text.length > 256 * 1024 ? 0 : Date.now() - Date.parse(event.created_at + 'Z') < 30000 ? 1000 : 3000);
    return { ...event, raw: member(text, 'payload') };
  }, [id], every);
  const back = { href: to(path), text: 'Events' };
  if (!data) return html`<${Page} title="Event" back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const open = data.jobs.filter((j) => ['available', 'scheduled', 'waiting', 'retryable'].includes(j.status)).length;
  const actions = html`<${Replay} event=${data} done=${again} />
    ${open > 0 && html`<${Confirm} label="Cancel" danger done=${again} ask=${async () => `${plural(open, 'job')} of this event that wait are canceled.`}
      act=${async () => { const r = await change(`events/${id}/cancel`); return `${plural(r.canceled, 'job')} canceled, ${r.running} running.`; }} />`}`;
  return html`<${Page} title=${data.event_type} back=${back} actions=${actions}>
    <${Problem} error=${error} />
    <section class="card"><${Facts} of=${[
      ['Source', html`<a href=${to(path, { source: data.source })}>${data.source}</a>`], ['Received', html`<${Exact} t=${data.created_at} /> <span class="sub"><${Ago} t=${data.created_at} /></span>`],
      ['Id', html`<${Id} id=${data.id} />`], ['Delivery id', data.idempotency_key && html`<code>${data.idempotency_key}</code>`],
    ]} /></section>
    <section><h2>Jobs</h2><${JobTable} rows=${data.jobs} empty="No consumer wanted this event." event=${false} retried=${again} /></section>
    ${data.workflow_runs.length > 0 && html`<section><h2>Workflow runs</h2><${RunTable} rows=${data.workflow_runs} /></section>`}
    ${data.declined && html`<section><h2>Not wanted by</h2><${Table} caption="Consumers that do not want the event" rows=${data.declined.map((d) => ({ key: d.handler, ...d }))} columns=${[
      { name: 'Consumer', cell: (r) => r.handler }, { name: 'Reason', class: 'text', cell: (r) => r.reason },
    ]} /></section>`}
    <section class="card"><h2>Payload</h2>${data.payload_encoding && html`<p class="muted">The payload is no text; this is its base64.</p>`}<${Json} text=${data.raw} label="Payload" /></section>
    <section class="card"><details><summary>${plural(Object.keys(data.headers).length, 'header')}</summary><dl class="facts">${Object.entries(data.headers).map(([k, v]) => html`<div><dt>${k}</dt><dd class="mono">${v}</dd></div>`)}</dl></details></section>
  <//>`;
}
