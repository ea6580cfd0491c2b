// The manual: its chapters, a search in them, and one chapter.
import { html, useEffect } from './lib.js';
import { readManual, useRead } from './api.js';
import { to } from './place.js';
import { anchor, anchors, markdown, plain } from './markdown.js';
import { Filters, Page, plural, Problem } from './ui.js';

const path = ['manual'];

let loaded;

// load reads the chapters once: {name, about, title, text}.
async function load() {
  loaded ||= (await readManual()).chapters.map((c) => ({ ...c, title: plain(/^# (.*)$/m.exec(c.text)?.[1] || c.name) }));
  return loaded;
}

// sections returns the parts of a chapter below its headings: {title, at, text}.
function sections(chapter) {
  const all = [{ title: '', at: '', text: '' }];
  const name = anchors();
  let code = false;
  for (const line of chapter.text.split('\n')) {
    if (/^ *```/.test(line)) code = !code;
    const m = !code && /^##+ (.*)$/.exec(line);
    if (m) all.push({ title: plain(m[1]), at: name(m[1]), text: '' });
    else if (!/^# /.test(line) && !/^ *```|^\|[-:|]+$/.test(line)) all.at(-1).text += (code ? line : line.startsWith('|') ? plain(line.replace(/^\| *| *\|$/g, '').replaceAll(' | ', ' · ')) : plain(line)) + '\n';
  }
  return all;
}

const most = 50;

// find returns the sections that have all words, first those whose headings have them. The text before
// the first heading goes by the title of its chapter.
function find(chapters, words) {
  const has = (text) => words.every((w) => text.toLowerCase().includes(w));
  const all = chapters.flatMap((chapter) => sections(chapter).map((s) => ({ ...s, chapter, best: has(s.title || chapter.title) })));
  return all.filter((s) => s.best || has(`${s.title} ${s.text}`)).sort((a, b) => b.best - a.best);
}

// Snippet shows a text around some words, which are marked: where they are together, if they are, and
// otherwise around the first of them.
function Snippet({ text, words }) {
  const flat = text.replace(/\s+/g, ' ').trim(), low = flat.toLowerCase();
  const places = [words.join(' '), ...words].map((w) => low.indexOf(w)).filter((i) => i >= 0);
  const first = Math.max(0, (places[0] ?? 0) - 60);
  const begin = first && flat.indexOf(' ', first) + 1;
  const end = begin + 220 < flat.length ? flat.lastIndexOf(' ', begin + 220) : flat.length;
  const parts = flat.slice(begin, end).split(new RegExp(`(${words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'i'));
  return html`<p>${begin > 0 && '… '}${parts.map((p, i) => (i % 2 ? html`<mark>${p}</mark>` : p))}${end < flat.length && ' …'}</p>`;
}

export function Manual({ params }) {
  const { data, error, again } = useRead(load, []);
  const words = (params.search || '').toLowerCase().split(/\s+/).filter(Boolean);
  const found = data && words.length ? find(data, words) : [];
  return html`<${Page} title="Manual">
    <${Filters} path=${path} params=${params} fields=${[{ name: 'search', label: 'Words in the manual', placeholder: 'visibility timeout', wide: true }]} />
    <${Problem} error=${error} again=${again} />
    ${!data && !error && html`<p class="muted" aria-busy="true">Reading …</p>`}
    ${data && words.length > 0 && html`<p class="muted" role="status">${found.length ? plural(found.length, 'section') : 'No section'} with ${words.length > 1 ? 'all of these words' : 'this word'}.${found.length > most ? ` The first ${most} are shown.` : ''}</p>
      <ol class="tries">${found.slice(0, most).map((s) => html`<li key=${s.chapter.name + s.at}><a class="open" href=${to([...path, s.chapter.name], { at: s.at })}>${s.chapter.title}${s.title && ' › ' + s.title}</a><${Snippet} text=${s.text} words=${words} /></li>`)}</ol>`}
    ${data && !words.length && html`<ol class="tries chapters">${data.map((c) => html`<li key=${c.name}><a class="open" href=${to([...path, c.name])}>${c.title}</a>${c.about !== c.title && html`<p class="muted">${c.about}</p>`}</li>`)}</ol>`}
  <//>`;
}

// linked makes the links of a chapter: to chapters and addresses. Other files are in the repository.
const linked = (chapters, here) => (nodes, target) => {
  const [file, at] = target.split('#');
  const name = file ? file.replace(/\.md$/, '') : here;
  if (chapters.some((c) => c.name === name)) return html`<a href=${to([...path, name], { at })}>${nodes}</a>`;
  if (/^https?:/.test(target)) return html`<a href=${target} target="_blank" rel="noreferrer">${nodes}</a>`;
  return html`${nodes} (<code>${new URL(target, 'file:///cmd/gateway/manual/').pathname.slice(1)}</code>)`;
};

export function Chapter({ id, params }) {
  const { data, error, again } = useRead(load, []);
  const at = data?.findIndex((c) => c.name === id);
  const chapter = data?.[at];
  useEffect(() => {
    if (!chapter) return;
    const target = params.at && document.getElementById(anchor(params.at));
    if (!target) return scrollTo(0, 0);
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  }, [chapter, params.at]);
  const back = { href: to(path), text: 'Manual' };
  if (!chapter) return html`<${Page} title="Manual" back=${back}><${Problem} error=${error || (data && { message: 'There is no such chapter.' })} again=${error && again} />${!data && !error && html`<p class="muted" aria-busy="true">Reading …</p>`}<//>`;
  const heads = sections(chapter).filter((s) => s.title);
  const before = data[at - 1], next = data[at + 1];
  return html`<${Page} title=${chapter.title} back=${back}>
    ${heads.length > 2 && html`<details class="card"><summary>On this page</summary><nav aria-label="On this page"><ul>${heads.map((s) => html`<li><a href=${to([...path, id], { at: s.at })}>${s.title}</a></li>`)}</ul></nav></details>`}
    <article class="manual">${markdown(chapter.text.replace(/^# .*\n/, ''), linked(data, id))}</article>
    <nav class="pager" aria-label="Chapters">${before ? html`<a href=${to([...path, before.name])}>← ${before.title}</a>` : html`<span></span>`}${next && html`<a href=${to([...path, next.name])}>${next.title} →</a>`}</nav>
  <//>`;
}
