// Markdown of the manual as elements. It makes nodes only, never HTML of a text.
import { html } from './lib.js';

// anchors returns a function that gives the headings of a text their anchors, as GitHub does: a second
// one with the same words gets a number.
export function anchors() {
  const seen = {};
  return (heading) => {
    const slug = plain(heading).toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-');
    const n = seen[slug] || 0;
    seen[slug] = n + 1;
    return n ? `${slug}-${n}` : slug;
  };
}

// anchor is the id of the element of an anchor: other elements of the page have ids as well.
export const anchor = (at) => 'm-' + at;

// plain is a line without its marks.
export const plain = (text) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').split('`').map((part, i) => (i % 2 ? part : part.replaceAll('*', ''))).join('');

const marks = /(`+)(.+?)\1|\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)|\*\*(.+?)\*\*|(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])/g;

// inline returns the nodes of a line. link returns the node of a link, from its nodes and its target.
function inline(text, link) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(marks)) {
    out.push(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[1]) out.push(html`<code>${m[2].trim()}</code>`);
    else if (m[4]) out.push(link(inline(m[3], link), m[4]));
    else if (m[5]) out.push(html`<strong>${inline(m[5], link)}</strong>`);
    else out.push(html`<em>${inline(m[6], link)}</em>`);
  }
  out.push(text.slice(at));
  return out;
}

// until returns the first line at or behind i that stop accepts, or the end.
function until(lines, i, stop) {
  while (i < lines.length && !stop(lines[i])) i++;
  return i;
}

// cells returns the cells of a row of a table.
const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim().replaceAll('\\|', '|'));

const indent = (line) => line.length - line.trimStart().length;
const bullet = /^( *)(- |\d+\. )/;

// table returns the table at line i, and the line behind it.
function table(lines, i, link) {
  const end = until(lines, i, (l) => !l.startsWith('|')), [head, , ...rest] = lines.slice(i, end);
  const row = (line, tag) => html`<tr>${cells(line).map((c) => (tag === 'th' && c ? html`<th scope="col">${inline(c, link)}</th>` : html`<td>${inline(c, link)}</td>`))}</tr>`;
  return [html`<div class="scroll" tabindex="0" role="group" aria-label=${'Table: ' + cells(head).map(plain).filter(Boolean).join(', ')}><table><thead>${row(head, 'th')}</thead><tbody>${rest.map((l) => row(l, 'td'))}</tbody></table></div>`, end];
}

// list returns the list at line i, and the line behind it. The lines of an item are indented.
function list(lines, i, link) {
  const first = bullet.exec(lines[i]), items = [];
  while (i < lines.length) {
    const m = bullet.exec(lines[i]);
    if (!m || m[1].length !== first[1].length || (m[2] === '- ') !== (first[2] === '- ')) break;
    const width = m[0].length, item = [lines[i].slice(width)];
    for (i++; i < lines.length && (indent(lines[i]) >= width || (!lines[i].trim() && indent(lines[i + 1] || '') >= width && lines[i + 1].trim())); i++) item.push(lines[i].slice(width));
    items.push(html`<li>${blocks(item, link)}</li>`);
    while (i < lines.length && !lines[i].trim() && bullet.test(lines[i + 1] || '') && indent(lines[i + 1]) === first[1].length) i++;
  }
  return [first[2] === '- ' ? html`<ul>${items}</ul>` : html`<ol start=${parseInt(first[2], 10)}>${items}</ol>`, i];
}

// blocks returns the nodes of lines. name returns the anchor of a heading.
function blocks(lines, link, name) {
  const out = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i], fence = /^ *```/.test(line), title = /^(#+) (.*)$/.exec(line);
    let node;
    if (!line.trim()) {
      i++;
      continue;
    } else if (fence) {
      const end = until(lines, i + 1, (l) => /^ *```/.test(l));
      node = html`<pre class="block" tabindex="0" role="group" aria-label="Example">${lines.slice(i + 1, end).map((l) => l.slice(Math.min(indent(l), indent(line)))).join('\n')}</pre>`;
      i = end + 1;
    } else if (title) {
      node = html`<${'h' + Math.min(title[1].length, 6)} id=${anchor(name(title[2]))} tabindex="-1">${inline(title[2], link)}<//>`;
      i++;
    } else if (line.startsWith('|')) [node, i] = table(lines, i, link);
    else if (bullet.test(line)) [node, i] = list(lines, i, link);
    else {
      const text = [];
      for (; i < lines.length && lines[i].trim() && !/^ *```|^#+ |^\|/.test(lines[i]) && (!text.length || !bullet.test(lines[i])); i++) text.push(lines[i].trim());
      node = html`<p>${inline(text.join(' '), link)}</p>`;
    }
    out.push(node);
  }
  return out;
}

// markdown returns the nodes of a text.
export const markdown = (text, link) => blocks(text.split('\n'), link, anchors());
