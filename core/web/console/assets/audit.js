// Audit: who changed what, when and from where.
import { html } from './lib.js';
import { read, useRead } from './api.js';
import { to } from './place.js';
import { visible } from './json.js';
import { Ago, Filters, Id, Page, Pager, Problem, Table } from './ui.js';

const path = ['audit'];

// words says in words what each action did.
const words = {
  'jobs.retry': 'retried', 'jobs.skip': 'skipped', 'events.cancel': 'canceled', 'events.replay': 'replayed', 'breakers.reset': 'closed the breaker of',
  'holds.hold': 'held', 'holds.release': 'released', 'queues.retry': 'retried messages of', 'queues.drain': 'drained', 'schedules.fire': 'fired', 'runs.redrive': 'redrove', 'runs.cancel': 'canceled',
  'operations.begin': 'began', 'operations.cancel': 'canceled', 'config.reload': 'read',
};

// kinds are the pages of the things that are changed by their ids, and their names.
const kinds = {
  'jobs.retry': ['jobs', 'job'], 'jobs.skip': ['jobs', 'job'], 'events.cancel': ['events', 'event'], 'events.replay': ['events', 'event'],
  'runs.redrive': ['runs', 'run'], 'runs.cancel': ['runs', 'run'], 'operations.begin': ['operations', 'operation'], 'operations.cancel': ['operations', 'operation'],
};

const isID = (text) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);

// Change says what was done, with a link to what it was done to.
function Change({ of }) {
  const [page, noun] = kinds[of.action] || [];
  const target = page && isID(of.target) ? html`${noun} <a href=${to([page, of.target])}><${Id} id=${of.target} /></a>` : visible(of.target.replace(/^handler\//, ''));
  return html`${words[of.action] || visible(of.action)} ${target}`;
}

const detail = (of) => Object.keys(of).sort().map((name) => `${visible(name)}: ${visible(of[name])}`).join(', ');

export function Audit({ params }) {
  const { data, error, busy, again } = useRead(() => read('audit', { actor: params.actor, action: params.action, target: params.target, after: params.after, limit: 50 }), [params.actor, params.action, params.target, params.after], params.after ? 0 : 5000);
  return html`<${Page} title="Audit">
    <${Filters} path=${path} params=${params} fields=${[
      { name: 'actor', label: 'Who' },
      { name: 'action', label: 'Action', options: [['', 'all'], ...Object.keys(words).map((a) => [a, a])] },
      { name: 'target', label: 'Target', wide: true },
    ]} />
    <${Problem} error=${error} again=${again} />
    <${Table} caption="Changes, newest first" rows=${data?.entries} busy=${busy} empty="No change was made, or none that fits." columns=${[
      { name: 'When', class: 'short', cell: (r) => html`<${Ago} t=${r.at} />` },
      { name: 'Who', class: 'short', cell: (r) => html`${visible(r.actor)}${r.role ? html`<span class="sub">${r.role}</span>` : ''}` },
      { name: 'What', class: 'text', cell: (r) => html`<${Change} of=${r} />` },
      { name: 'Details', class: 'text', cell: (r) => detail(r.detail) || '–' },
      { name: 'From', cell: (r) => (r.address ? visible(r.address) : r.via) },
    ]} />
    <${Pager} path=${path} params=${params} next=${data?.next} />
  <//>`;
}
