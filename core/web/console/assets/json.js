// Texts of JSON as they are, without parsing: a browser's numbers end at 2^53, and its objects forget
// the order of members.

const space = ' \t\n\r';

// skip returns the place behind the white space at i.
function skip(text, i) {
  while (space.includes(text[i]) && i < text.length) i++;
  return i;
}

// end returns the place behind the value that begins at i.
function end(text, i) {
  let depth = 0;
  for (; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      for (i++; text[i] !== '"' && i < text.length; i++) if (text[i] === '\\') i++;
      if (depth === 0) return i + 1;
    } else if (c === '{' || c === '[') depth++;
    else if (c === '}' || c === ']') {
      if (--depth === 0) return i + 1;
      if (depth < 0) return i;
    } else if (depth === 0 && (c === ',' || space.includes(c))) return i;
  }
  return i;
}

// member returns the text of a member of the object that a text has, or undefined.
export function member(text, name) {
  const wanted = JSON.stringify(name);
  let i = skip(text, 0) + 1;
  while (i < text.length) {
    i = skip(text, i);
    if (text[i] !== '"') return undefined;
    const key = text.slice(i, end(text, i));
    i = skip(text, skip(text, i + key.length) + 1);
    const stop = end(text, i);
    if (key === wanted) return text.slice(i, stop);
    i = skip(text, stop) + 1;
  }
  return undefined;
}

// elements returns the texts of the elements of the array that a text has.
export function elements(text) {
  const all = [];
  for (let i = skip(text, skip(text, 0) + 1); i < text.length && text[i] !== ']'; ) {
    const stop = end(text, i);
    all.push(text.slice(i, stop));
    i = skip(text, stop);
    if (text[i] === ',') i = skip(text, i + 1);
  }
  return all;
}

// pretty returns the text with a line for each member and element.
export function pretty(text) {
  const out = [];
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      const stop = end(text, i);
      out.push(text.slice(i, stop));
      i = stop - 1;
    } else if (c === '{' || c === '[') {
      const close = skip(text, i + 1);
      if (text[close] === '}' || text[close] === ']') {
        out.push(c, text[close]);
        i = close;
      } else {
        depth++;
        out.push(c, line());
      }
    } else if (c === '}' || c === ']') {
      depth--;
      out.push(line(), c);
    } else if (c === ',') out.push(c, line());
    else if (c === ':') out.push(': ');
    else if (!space.includes(c)) out.push(c);
  }
  return out.join('');
}

// visible returns a text whose control characters, also those that change the direction of text, are
// shown by their numbers.
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (c) => '\u27e8U+' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0') + '\u27e9');
}
