// The graph of a workflow run: the definition that it follows, with the state of each step. The places
// are computed by the gateway; here they become shapes.
import { html } from './lib.js';
import { visible } from './json.js';
import { mark } from './ui.js';

const clip = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);

// tally says how many executions of a step have which status; "" if there is only one.
export function tally(s) {
  const all = Object.entries(s.counts);
  if (all.reduce((sum, [, n]) => sum + n, 0) < 2) return '';
  return all.map(([status, n]) => `${n} ${status}`).join(', ');
}

// line returns the path of a way. It comes to each point from above or below, so that lines and lanes
// are one curve.
function line(w) {
  const [first, ...rest] = w.points;
  if (w.from === w.to) return `M${first[0]} ${first[1]}C${first[0] + 30} ${first[1]} ${rest[0][0] + 30} ${rest[0][1]} ${rest[0][0]} ${rest[0][1]}`;
  let [x, y] = first;
  let d = `M${x} ${y}`;
  for (const [nx, ny] of rest) {
    const middle = (y + ny) / 2;
    d += nx === x ? `V${ny}` : `C${x} ${middle} ${nx} ${middle} ${nx} ${ny}`;
    [x, y] = [nx, ny];
  }
  return d;
}

const says = { next: 'then', choice: 'if', catch: 'after the error', continue: 'even if it' };

// shape returns the outline of a step: choices have cut corners, waits and callbacks are round.
const round = (s) => (s.type === 'wait' || s.type === 'callback' ? 26 : s.type === 'choice' ? 2 : 9);

function Node({ s, link, chosen, outer }) {
  const state = s.status || 'none';
  const word = s.status ? tally(s) || s.status : 'not reached';
  const what = html`
    <title>${s.name}, ${s.type}: ${word}${s.error ? '. ' + visible(s.error) : ''}</title>
    <rect x=${s.x} y=${s.y} width=${s.width} height=${s.height} rx=${round(s)} />
    <text x=${s.x + 16} y=${s.y + 23}>${clip(s.name, 24)}</text>
    <text class="type" x=${s.x + s.width - 16} y=${s.y + 23} text-anchor="end">${s.name.length > 17 ? '' : s.type}</text>
    <text class="state" x=${s.x + 16} y=${s.y + 44}><tspan class="mark">${s.status ? mark(s.status) : '○'}</tspan><tspan dx="6">${clip(word, 28)}</tspan>${s.on_failure && html`<tspan class="type" dx="8">if the run fails</tspan>`}${s.note && html`<tspan class="type" dx="8">${clip(visible(s.note), outer ? 60 : 16)}</tspan>`}</text>`;
  const name = `${outer ? 'outer ' : ''}node g-${state}${chosen ? ' chosen' : ''}`;
  return s.path ? html`<a href=${link(s)} class=${name}>${what}</a>` : html`<g class=${name}>${what}</g>`;
}

// Graph draws a graph. People who do not see it have the table of the steps.
export function Graph({ g, link, chosen }) {
  const reached = new Set(g.steps.filter((s) => s.status).map((s) => s.key));
  const outer = new Set(g.steps.map((s) => s.within));
  // What contains others is drawn before them.
  const boxes = [...g.steps.filter((s) => outer.has(s.key) && s.width > 0), ...g.branches].sort((a, b) => b.width * b.height - a.width * a.height);
  const style = { width: g.width + 'px', height: g.height + 'px' };
  const placed = g.steps.filter((s) => s.width > 0);
  return html`<div class="card graph" tabindex="0" role="region" aria-label="Graph of the run"><svg viewBox=${`0 0 ${g.width} ${g.height}`} width=${style.width} height=${style.height} role="group" aria-label="Steps; the table below has the same">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5L7.5 4L0 7.5z" /></marker></defs>
    ${boxes.map((s) => (s.key ? html`<${Node} key=${s.key} s=${s} link=${link} chosen=${chosen === s.path && chosen} outer />`
      : html`<g class="branch"><rect x=${s.x} y=${s.y} width=${s.width} height=${s.height} rx="8" /><text x=${s.x + 14} y=${s.y + 17}>${clip(s.name, 30)}</text></g>`))}
    ${g.ways.map((w) => html`<path class=${`way w-${w.kind}${reached.has(w.from) && reached.has(w.to) ? '' : ' apart'}`} d=${line(w)} marker-end="url(#tip)"><title>${says[w.kind]}${w.label ? ' ' + visible(w.label) : ''}</title></path>`)}
    ${placed.filter((s) => !outer.has(s.key)).map((s) => html`<${Node} key=${s.key} s=${s} link=${link} chosen=${chosen === s.path && chosen} />`)}
    ${g.ways.filter((w) => w.label && w.from !== w.to).map((w) => html`<text class="label" x=${w.label_x} y=${w.label_y} text-anchor="middle">${clip(visible(w.label), 30)}<title>${visible(w.label)}</title></text>`)}
  </svg></div>`;
}
