// Queues: the list, and one queue with the messages at its head and the dead ones.
import { html } from './lib.js';
import { change, readText, read, useRead } from './api.js';
import { elements, member } from './json.js';
import { to } from './place.js';
import { Hold, Release } from './flow.js';
import { Ago, Confirm, Count, count, Facts, Id, Json, Page, plural, Problem, Table } from './ui.js';

const path = ['queues'];

export function Queues() {
  const { data, error, again } = useRead(() => read('queues'), [], 3000);
  return html`<${Page} title="Queues">
    <${Problem} error=${error} again=${again} />
    <${Table} caption="Queues" rows=${data?.queues} empty="No queue is configured. Consumers fetch messages from a queue, and acknowledge them." link=${(r) => to(['queues', r.name])} columns=${[
      { name: 'Queue', cell: (r) => r.name },
      { name: 'Source', cell: (r) => r.source || 'not configured any more' },
      { name: 'Events', class: 'text', cell: (r) => r.events.join(', ') || 'all' },
      { name: 'Visibility timeout', class: 'n', cell: (r) => r.visibility_timeout || '–' },
      { name: 'To do', class: 'n', cell: (r) => html`<${Count} n=${r.pending} />` },
      { name: 'With consumers', class: 'n', cell: (r) => html`<${Count} n=${r.processing} />` },
      { name: 'Dead', class: 'n', cell: (r) => html`<${Count} n=${r.dead} />` },
    ]} />
  <//>`;
}

// messages reads a list of messages with their payloads as texts.
async function messages(at, parameters) {
  const text = await readText(at, parameters);
  const list = JSON.parse(text);
  elements(member(text, 'messages')).forEach((m, i) => { list.messages[i].raw = member(m, 'payload'); });
  return list;
}

const MessageList = ({ rows, empty }) => (rows.length ? html`<ol class="tries dense">${rows.map((m) => html`<li key=${m.id}>
  <div class="line"><strong>${m.event_type}</strong><a href=${to(['jobs', m.id])}><${Id} id=${m.id} /></a><span class="muted"><${Ago} t=${m.created_at} /></span>${m.last_error && html`<span>${m.last_error}</span>`}
  <details><summary>Payload</summary><${Json} text=${m.raw} label="Payload" /></details></div></li>`)}</ol>` : html`<p class="empty">${empty}</p>`);

// counted reads how many messages a queue has at this moment.
async function counted(id) {
  const q = (await read('queues')).queues.find((q) => q.name === id);
  if (!q) throw new Error('There is no such queue.');
  return q;
}

// The numbers are those of the statistics. A question about a change reads them anew.
export function Queue({ id, stats }) {
  const at = 'queues/' + encodeURIComponent(id);
  const { data, error, again } = useRead(async () => {
    const [head, dead] = await Promise.all([messages(at + '/peek', { limit: 20 }), messages(at + '/dlq', { limit: 20 })]);
    return { head: head.messages, dead: dead.messages, more: dead.has_more };
  }, [id], 5000);
  const back = { href: to(path), text: 'Queues' };
  if (!data) return html`<${Page} title=${id} back=${back}><${Problem} error=${error} again=${again} /><//>`;
  const q = stats.data?.queues.find((q) => q.name === id);
  const actions = html`${data.dead.length > 0 && html`<${Confirm} label="Retry dead messages" done=${again} ask=${async () => `${plural((await counted(id)).dead, 'dead message')} become visible again.`} act=${async () => `${plural((await change(at + '/retry')).retried, 'message')} visible again.`} />`}
    ${q && (q.held_since ? html`<${Release} target=${'queue/' + id} done=${stats.again} />` : html`<${Hold} of=${['queue/' + id]} done=${stats.again} />`)}
    <${Confirm} label="Drain" role="admin" danger done=${again} ask=${async () => { const now = await counted(id); return `All messages of ${id} that are not completed are deleted: ${plural(now.pending + now.processing + now.dead, 'message')} now. They cannot be brought back.`; }}
      act=${async () => `${plural((await change(at + '/drain')).drained, 'message')} deleted.`} />`;
  return html`<${Page} title=${id} back=${back} actions=${actions}>
    <${Problem} error=${error} />
    ${q ? html`<section class="card"><${Facts} of=${[['To do', count(q.pending)], ['With consumers', count(q.processing)], ['Dead', count(q.dead)], ['Held since', q.held_since && html`<${Ago} t=${q.held_since} />`]]} /></section>` : stats.data && html`<p class="note">This queue is not configured any more.</p>`}
    <section><h2>Next messages</h2><${MessageList} rows=${data.head} empty="No message is due." /></section>
    <section><h2>Dead messages</h2><${MessageList} rows=${data.dead} empty="No message is dead." />${data.more && html`<p><a href=${to(['jobs'], { handler: 'queue/' + id, status: 'dead' })}>All dead messages</a></p>`}</section>
  <//>`;
}
