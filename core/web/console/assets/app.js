// The frame of the console: signing in, the list of pages, keys.
import { html, render, useEffect, useRef, useState } from './lib.js';
import { ahead, onSignedOut, read, session, useRead } from './api.js';
import { place, set, setting, to, usePlace } from './place.js';
import { count, Me, Page, plural, Problem, tell, Told, useMay } from './ui.js';
import { Overview } from './overview.js';

// Other pages come with modules of their own, which the first page does not wait for. They are loaded when
// a page is opened, and all of them soon after the first page: after an update of the gateway, a page that is
// open would not find them any more.
const names = ['events', 'jobs', 'queues', 'lines', 'runs', 'operations', 'flow', 'audit', 'manual'];
const loaded = {};
const load = async (name) => (loaded[name] ||= await import(`./${name}.js`));
const loadAll = () => names.forEach((name) => load(name).catch(() => {})); // the page of a module that is missing says so

// later returns a page that is in a module.
const later = (name, part) => (props) => {
  const [error, put] = useState();
  useEffect(() => {
    if (!loaded[name]) load(name).then(() => put(null), put);
  }, []);
  if (loaded[name]) return html`<${loaded[name][part]} ...${props} />`;
  return error ? html`<${Problem} error=${{ message: 'The gateway does not answer, or it has a new version.' }} again=${() => location.reload()} />` : html`<p class="muted" aria-busy="true">Reading …</p>`;
};

// The pages: the first part of the path, the text in the list, the page, the page of one of them, and the role
// that it needs if a reader may not see it.
const pages = [
  { path: '', text: 'Overview', page: Overview },
  { path: 'events', text: 'Events', page: later('events', 'Events'), one: later('events', 'Event') },
  { path: 'jobs', text: 'Jobs', page: later('jobs', 'Jobs'), one: later('jobs', 'Job') },
  { path: 'failures', text: 'Failures', page: later('jobs', 'Failures'), bubble: (s) => s.jobs.dead, of: 'dead job' },
  { path: 'queues', text: 'Queues', page: later('queues', 'Queues'), one: later('queues', 'Queue') },
  { path: 'lines', text: 'Lines', page: later('lines', 'Lines'), bubble: (s) => [...s.handlers, ...s.queues].reduce((n, c) => n + (c.lines_stopped || 0), 0), of: 'stopped line' },
  { path: 'runs', text: 'Workflow runs', page: later('runs', 'Runs'), one: later('runs', 'Run') },
  { path: 'operations', text: 'Operations', page: later('operations', 'Operations'), one: later('operations', 'Operation') },
  { path: 'schedules', text: 'Schedules', page: later('flow', 'Schedules') },
  { path: 'holds', text: 'Holds', page: later('flow', 'Holds') },
  { path: 'configuration', text: 'Configuration', page: later('flow', 'Configuration') },
  { path: 'audit', text: 'Audit', page: later('audit', 'Audit'), role: 'admin' },
  { path: 'manual', text: 'Manual', page: later('manual', 'Manual'), one: later('manual', 'Chapter') },
];

// themes are what the switch goes through; "" follows the system.
const themes = ['', 'light', 'dark'];

function nextTheme() {
  const next = themes[(themes.indexOf(setting('theme')) + 1) % themes.length];
  set('theme', next);
}

function dress() {
  const theme = setting('theme');
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// SignIn asks for a token.
function SignIn({ done }) {
  const [state, put] = useState({});
  const field = useRef();
  useEffect(() => {
    document.title = 'Sign in – Event gateway';
    field.current.focus();
  }, []);
  const submit = async (e) => {
    e.preventDefault();
    put({ busy: true });
    try {
      done(await session.begin({ token: field.current.value.trim() }));
    } catch (error) {
      put({ error: error.status === 401 ? { message: 'This token is not one of api.auth_token or api.tokens.' } : error });
      field.current.select();
    }
  };
  return html`<main class="enter"><form class="card" onSubmit=${submit}>
    <h1>Event gateway</h1>
    <label>Token<input ref=${field} type="password" name="token" required autocomplete="current-password" aria-describedby="why" /></label>
    <p id="why" class="muted">One of <code>api.auth_token</code> or <code>api.tokens</code> of the configuration. It is exchanged for a cookie that counts for twelve hours.</p>
    <${Problem} error=${state.error} />
    <button class="primary" disabled=${state.busy}>Sign in</button>
    <p class="muted">On the machine of its configuration, <code>gateway console</code> opens it signed in.</p>
  </form><${Told} /></main>`;
}

const keys = [
  ['/', 'to the first field of the search'], ['j, k', 'to the next or previous row'], ['o', 'open the row'], ['r', 'read again'],
  ['t', 'light, dark, or as the system'], ['?', 'this list'],
];

// Help lists the keys, and has the switches for keys and times.
function Help({ at }) {
  return html`<dialog ref=${at} aria-label="Keys and times">
    <h2>Keys</h2>
    <dl class="keys">${keys.map(([key, does]) => html`<dt>${key}</dt><dd>${does}</dd>`)}</dl>
    <div class="actions">
      <button type="button" onClick=${() => set('keys', setting('keys') ? '' : 'off')}>${setting('keys') ? 'Turn keys on' : 'Turn keys off'}</button>
      <button type="button" onClick=${() => set('time', setting('time') ? '' : 'local')}>${setting('time') ? 'Show times in UTC' : 'Show times of this place'}</button>
      <button type="button" class="primary" onClick=${() => at.current.close()}>Close</button>
    </div>
  </dialog>`;
}

// walk moves the chosen row of the first table by a number of rows.
function walk(by) {
  const rows = [...document.querySelectorAll('main tbody tr')].filter((r) => r.querySelector('a.open'));
  if (!rows.length) return;
  const now = rows.findIndex((r) => r.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? 0 : now + by))];
  next.querySelector('a.open').focus();
}

function useKeys(help, again) {
  useEffect(() => {
    const pressed = (e) => {
      if (setting('keys') || e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input, textarea, select') || document.querySelector('dialog[open]')) return;
      const does = {
        '/': () => document.querySelector('main .filters :is(input, select)')?.focus(),
        j: () => walk(1), k: () => walk(-1),
        o: () => document.activeElement.closest('tr')?.querySelector('a.open')?.click(),
        r: again, t: nextTheme, '?': () => help.current.showModal(),
      }[e.key];
      if (!does) return;
      e.preventDefault();
      does();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

// Frame is the list of pages beside one of them.
function Frame({ me, leave }) {
  const now = usePlace();
  const help = useRef();
  const [round, again] = useState(0);
  dress();
  const nav = useRef();
  useEffect(() => { // in a narrow window the list is a row, which scrolls to the page that is shown
    const a = nav.current.querySelector('[aria-current]');
    if (a) nav.current.scrollLeft = a.offsetLeft - (nav.current.clientWidth - a.offsetWidth) / 2;
  }, [now.path[0]]);
  useKeys(help, () => again((n) => n + 1));
  const stats = useRead(() => read('stats'), [round], 5000);
  useEffect(() => {
    const timer = setTimeout(loadAll, 500);
    return () => clearTimeout(timer);
  }, []);
  const [first, ...rest] = now.path;
  const admin = useMay('admin');
  const mine = pages.filter((p) => admin || p.role !== 'admin');
  const found = mine.find((p) => p.path === (first || ''));
  let shown;
  if (!found || (rest.length && !found.one)) shown = html`<${Page} title="Not found"><p>There is no such page. <a href="#/">To the overview</a></p><//>`;
  else shown = html`<${rest.length ? found.one : found.page} key=${now.path.join('/') + ':' + round} id=${rest[0]} params=${now.params} stats=${stats} />`;
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>To the content</a>
  <div class="frame">
    <aside class="side">
      <a class="brand" href="#/"><img src=${new URL('icon.svg', import.meta.url).pathname} alt="" />Event gateway</a>
      <nav aria-label="Pages" ref=${nav}><ul>${mine.map((p) => {
        const n = p.bubble && stats.data ? p.bubble(stats.data) : 0;
        return html`<li><a href=${to(p.path ? [p.path] : [])} aria-current=${p === found ? 'page' : undefined}>${p.text}${n > 0 && html`<span class="bubble" title=${plural(n, p.of)}>${count(n)}<span class="unseen"> ${p.of}${n === 1 ? '' : 's'}</span></span>`}</a></li>`;
      })}</ul></nav>
      <footer>
        <span>${me.name ? html`${me.name}, ` : ''}${me.role}</span>
        <button type="button" class="quiet" onClick=${nextTheme}>Theme: ${setting('theme') || 'system'}</button>
        <button type="button" class="quiet" onClick=${() => help.current.showModal()}>Keys and times</button>
        ${leave && html`<button type="button" class="quiet" onClick=${leave}>Sign out</button>`}
      </footer>
    </aside>
    <main id="main" tabindex="-1">${shown}</main>
  </div>
  <${Help} at=${help} /><${Told} />`;
}

// begin returns the session. An address with a code, which gateway console makes, begins one; the code
// leaves the address and the history of the browser.
async function begin() {
  const { path, params } = place();
  if (path[0] !== 'sign-in') return session.read();
  history.replaceState(null, '', location.pathname + location.search + '#/');
  try {
    return await session.begin({ code: params.code || '' });
  } catch (error) {
    if (error.status === 401) tell('This link has expired. A link counts for a minute: run gateway console again, or give a token.');
    return session.read();
  }
}

// App asks for a token, unless there is a session.
function App() {
  const [me, put] = useState();
  useEffect(() => {
    dress();
    onSignedOut(() => put(null));
    begin().then(put, (error) => put(error.status === 401 ? null : { error }));
  }, []);
  if (me === undefined) return html`<p class="enter" aria-busy="true">Reading …</p>`;
  if (me === null) return html`<${SignIn} done=${put} />`;
  if (me.error) return html`<main class="enter"><${Problem} error=${me.error} again=${() => location.reload()} /></main>`;
  const leave = async () => {
    await session.end();
    put(null);
  };
  return html`<${Me.Provider} value=${me}><${Frame} me=${me} leave=${me.open ? null : leave} /><//>`;
}

const [first] = place().path;
if (first !== 'sign-in') {
  ahead('stats');
  if (first) loadAll(); // the first page is one of them
  else ahead('topology');
}
render(html`<${App} />`, document.body);
