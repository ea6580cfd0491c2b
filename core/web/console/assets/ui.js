// Pieces of pages.
import { createContext, html, useContext, useEffect, useRef, useState } from './lib.js';
import { pretty, visible } from './json.js';
import { go, place, setting, to } from './place.js';

// Me is the session: {name, role}.
export const Me = createContext({ role: 'read' });

const ranks = { send: 1, read: 1, operate: 2, admin: 3 };

// useMay reports whether the session may do what needs a role. The server decides; the page only leaves
// out what would be refused.
export const useMay = (role) => (ranks[useContext(Me).role] || 0) >= ranks[role];

const marks = {
  completed: '✓', succeeded: '✓', dead: '✕', failed: '✕', retryable: '↻', running: '▶', available: '●', ready: '●', pending: '●',
  scheduled: '◷', waiting: '⋯', canceled: '⊘', skipped: '⊘', open: '✕', closed: '✓', 'half-open': '◐', held: '❚❚', finished: '✓', stopped: '✕',
};

// mark returns the mark of a status.
export const mark = (is) => marks[is] || '·';

// Status shows a status by a mark, a word and a colour. text stands in place of the word.
export const Status = ({ is, text, title }) => html`<span class=${'status s-' + is} title=${title}><span class="mark" aria-hidden="true">${mark(is)}</span>${text || is}</span>`;

const parse = (t) => new Date(t + 'Z');
const local = () => setting('time') === 'local';
const pad = (n, width = 2) => String(n).padStart(width, '0');

// exact returns a time in full, in UTC or in the zone of the browser.
export function exact(t) {
  if (!t) return '–';
  if (!local()) return t.replace('T', ' ').replace(/\.\d+$/, '') + ' UTC';
  const d = parse(t);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

// span returns a number of seconds in words.
export function span(s) {
  if (s < 1) return s < 0.0005 ? '<1 ms' : Math.round(s * 1000) + ' ms';
  if (s < 90) return Math.round(s) + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  if (s < 129600) return Math.round(s / 3600) + ' h';
  return Math.round(s / 86400) + ' d';
}

// Ago shows for how long a time has passed, or how long it takes until then.
export function Ago({ t }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 5000);
    return () => clearInterval(timer);
  }, []);
  if (!t) return '–';
  const s = (Date.now() - parse(t)) / 1000;
  return html`<time datetime=${t + 'Z'} title=${exact(t)}>${Math.abs(s) < 1.5 ? 'now' : s > 0 ? span(s) + ' ago' : 'in ' + span(-s)}</time>`;
}

export const Exact = ({ t }) => html`<time datetime=${t ? t + 'Z' : ''}>${exact(t)}</time>`;

// count returns a number as people read it. Counts end at 100,000.
export const count = (n) => (n >= 100000 ? '100,000+' : Number(n).toLocaleString('en'));

// Count shows a number in a table; a zero is pale, so that the others are seen.
export const Count = ({ n }) => (n ? count(n) : html`<span class="zero">0</span>`);

// plural returns a number with its noun.
export const plural = (n, noun, many = noun + 's') => `${count(n)} ${n === 1 ? noun : many}`;

export const Id = ({ id }) => html`<code class="id">${id}</code>`;

// Problem shows an error, and a button to try again.
export const Problem = ({ error, again }) =>
  error ? html`<div class="problem" role="alert"><strong>${error.message}</strong>${again && html` <button type="button" onClick=${again}>Try again</button>`}</div>` : null;

// focusOn moves the focus to an element that was drawn, unless the focus is in its area already: effects run some
// milliseconds after the drawing, and a person may have begun to type. An area that gets it itself is scrolled to.
export function focusOn(element, area) {
  if (!area.contains(document.activeElement)) element.focus({ preventScroll: element !== area });
}

// Page is the content of a view, with its heading. The heading gets the focus when the view opens, so
// that a screen reader says where the person is.
export function Page({ title, actions, children, back }) {
  const page = useRef(), heading = useRef();
  useEffect(() => {
    document.title = `${title} – Event gateway`;
    focusOn(heading.current, page.current);
  }, [title]);
  return html`<div class="page" ref=${page}>
    <header class="head">
      <div>${back && html`<a class="back" href=${back.href}>← ${back.text}</a>`}<h1 tabindex="-1" ref=${heading}>${title}</h1></div>
      <div class="actions">${actions}</div>
    </header>
    ${children}
  </div>`;
}

// Table shows rows. A row whose link is given opens with it; j, k and o walk through these.
export function Table({ caption, columns, rows, link, empty, busy }) {
  if (!rows) return html`<p class="muted" aria-busy="true">Reading …</p>`;
  if (!rows.length) return html`<p class="empty">${empty || 'Nothing here.'}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table aria-busy=${busy ? 'true' : undefined}>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.class}>${c.name || html`<span class="unseen">Actions</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((r) => html`<tr key=${r.id || r.name || r.key}>${columns.map((c, i) => {
      const cell = c.cell(r);
      return html`<td class=${c.class}>${i === 0 && link ? html`<a class="open" href=${link(r)}>${cell}</a>` : cell}</td>`;
    })}</tr>`)}</tbody>
  </table></div>`;
}

// Facts is a list of names and values; values that are null are left out. A value that is whole has a
// line of its own.
export const Facts = ({ of }) =>
  html`<dl class="facts">${of.filter(([, v]) => v || v === 0).map(([name, value, whole]) => html`<div class=${whole ? 'whole' : ''}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

const firstBytes = 64 * 1024;

// Json shows a text of JSON, at first its beginning only.
export function Json({ text, label }) {
  const [all, more] = useState(false);
  if (text === undefined || text === null) return null;
  const cut = !all && text.length > firstBytes;
  return html`<div class="json">
    <pre tabindex="0" aria-label=${label}>${visible(pretty(cut ? text.slice(0, firstBytes) : text))}${cut && ' …'}</pre>
    ${cut && html`<button type="button" onClick=${() => more(true)}>Show all ${Math.ceil(text.length / 1024).toLocaleString('en')} KiB</button>`}
  </div>`;
}

// Confirm is a button whose change is made in two steps. ask returns the question, with the number of
// what it changes, or {none: text} if there is nothing to change; act makes the change and returns what
// to say of it. It asks again when about changes, which is what the children chose.
export function Confirm({ label, ask, act, role = 'operate', danger, done, about, children }) {
  const may = useMay(role);
  const dialog = useRef();
  const [state, set] = useState({});
  const asked = useRef(0);
  const question = async () => {
    const mine = ++asked.current;
    set({ asking: true });
    let next;
    try {
      const got = await ask();
      next = got.none ? { none: got.none } : { question: got };
    } catch (error) {
      next = { error };
    }
    if (mine === asked.current) set(next);
  };
  useEffect(() => {
    if (dialog.current?.open) question();
  }, [about]);
  if (!may) return null;
  const open = () => {
    dialog.current.showModal();
    question();
  };
  const run = async () => {
    set((s) => ({ ...s, busy: true }));
    try {
      const said = await act();
      dialog.current.close();
      tell(said);
      done?.();
    } catch (error) {
      set((s) => ({ ...s, busy: false, error }));
    }
  };
  return html`<button type="button" class=${danger ? 'danger' : ''} onClick=${open}>${label}</button>
    <dialog ref=${dialog} aria-label=${label}>
      <h2>${label}</h2>
      ${state.asking && html`<p aria-busy="true">Counting …</p>`}
      ${(state.question || state.none) && html`<p role="status">${state.question || state.none}</p>`}
      ${children}
      <${Problem} error=${state.error} />
      <div class="actions">
        <button type="button" onClick=${() => dialog.current.close()}>Leave it</button>
        ${state.question && html`<button type="button" class=${danger ? 'danger' : 'primary'} disabled=${state.busy} onClick=${run}>${label}</button>`}
      </div>
    </dialog>`;
}

// copy puts a text on the clipboard, and returns whether the browser did it. Browsers refuse it to pages
// that are neither of this machine nor encrypted.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// Copied says what became of a copy; nothing before there was one.
export const Copied = ({ is }) => html`<span role="status" class="muted">${is === undefined ? '' : is ? 'Copied.' : 'The browser did not let it be copied: select the text below.'}</span>`;

let untold = '';

// tell shows a message for some seconds, and has screen readers say it. A message that comes before
// there is a page waits for it.
export function tell(text) {
  untold = text;
  dispatchEvent(new Event('told'));
}

export function Told() {
  const [text, set] = useState('');
  useEffect(() => {
    let timer;
    const show = () => {
      set(untold);
      untold = '';
      clearTimeout(timer);
      timer = setTimeout(() => set(''), 8000);
    };
    if (untold) show();
    addEventListener('told', show);
    return () => removeEventListener('told', show);
  }, []);
  return html`<div class="told" role="status" aria-live="polite">${text && html`<p>${text}</p>`}</div>`;
}

// Filters is the form of a listing. Each field is a parameter of the address. What a person types stays
// while the listing is read again, so a text has a default, and no value that each rendering sets.
export function Filters({ path, fields, params }) {
  const submit = (e) => {
    e.preventDefault();
    const next = {};
    for (const [name, value] of new FormData(e.target)) next[name] = String(value).trim();
    go(path, next);
  };
  return html`<form class="filters" role="search" key=${JSON.stringify(params)} onSubmit=${submit}>
    ${fields.map((f) => html`<label class=${f.wide ? 'wide' : ''}><span>${f.label}</span>${f.options
      ? html`<select name=${f.name} onChange=${(e) => e.target.form.requestSubmit()}>${f.options.map(([value, text]) => html`<option value=${value} selected=${(params[f.name] || '') === value}>${text}</option>`)}</select>`
      : html`<input name=${f.name} defaultValue=${params[f.name] || ''} placeholder=${f.placeholder || ''} autocomplete="off" spellcheck="false" />`}</label>`)}
    ${fields.some((f) => !f.options) && html`<button type="submit" class="primary">Search</button>`}
    ${fields.length > 1 && Object.keys(params).length > 0 && html`<a class="clear" href=${to(path)}>Clear</a>`}
  </form>`;
}

// Pager has the links of a listing: to the older page, and back to the newest one.
export function Pager({ path, params, next }) {
  if (!next && !params.after) return null;
  const { after, ...first } = params;
  return html`<nav class="pager" aria-label="Older and newer">
    ${after ? html`<a href=${to(path, first)}>Newest</a>` : html`<span></span>`}
    ${next ? html`<a href=${to(path, { ...params, after: next })}>Older</a>` : html`<span class="muted">No older ones</span>`}
  </nav>`;
}

// since returns the time that a choice such as "1h" means, as the API takes it. It is the beginning of a minute: the
// gateway keeps answers for all pages that ask for the same.
export function since(choice) {
  const units = { m: 60e3, h: 3600e3, d: 86400e3 };
  const m = /^(\d+)([mhd])$/.exec(choice || '');
  return m ? new Date(Math.floor(Date.now() / 60e3) * 60e3 - m[1] * units[m[2]]).toISOString().replace('Z', '') : '';
}

export const spans = [['', 'any time'], ['15m', 'last 15 minutes'], ['1h', 'last hour'], ['1d', 'last day'], ['7d', 'last 7 days']];

export const here = place;
