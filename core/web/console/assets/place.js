// Where the page is: the fragment of its address has the path and the parameters of what is shown, and
// the query has what the person set: theme, time zone, keys. So each view has an address, and nothing
// is stored in the browser.
import { useEffect, useState } from './lib.js';

// place returns {path: [...], params: {...}} of the address.
export function place() {
  const [path, text] = location.hash.replace(/^#\/?/, '').split('?');
  return {
    path: path.split('/').filter(Boolean).map(decodeURIComponent),
    params: Object.fromEntries(new URLSearchParams(text || '')),
  };
}

// to returns the address of a view.
export function to(path, params = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value) q.set(name, value);
  const text = q.toString();
  return '#/' + path.map(encodeURIComponent).join('/') + (text ? '?' + text : '');
}

export function go(path, params) {
  location.hash = to(path, params);
}

// setting returns what the person set, or "".
export const setting = (name) => new URLSearchParams(location.search).get(name) || '';

// set sets it; "" removes it.
export function set(name, value) {
  const q = new URLSearchParams(location.search);
  if (value) q.set(name, value);
  else q.delete(name);
  const text = q.toString();
  history.replaceState(null, '', location.pathname + (text ? '?' + text : '') + location.hash);
  dispatchEvent(new Event('hashchange'));
}

// usePlace returns the place, and renders again when it or a setting changes.
export function usePlace() {
  const [now, next] = useState(place);
  useEffect(() => {
    const moved = () => next(place());
    addEventListener('hashchange', moved);
    moved(); // the address may have changed since the first drawing, which comes before this
    return () => removeEventListener('hashchange', moved);
  }, []);
  return now;
}
