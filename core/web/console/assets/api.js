// The management API, as the page calls it: below the path of the console, with the cookie of the
// session.
import { useEffect, useRef, useState } from './lib.js';

// A Failure is a reply that is no success. Its message is for people.
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// root is the path of the console, below which are its files, its session and the API.
const root = new URL('../../', import.meta.url).pathname;

let signedOut = () => {};

// onSignedOut sets the function that is called when a session ends.
export function onSignedOut(f) {
  signedOut = f;
}

async function call(method, path, body, accept = '*/*') {
  let reply;
  try {
    reply = await fetch(root + path, {
      method,
      headers: body === undefined ? {} : { 'Content-Type': 'application/json', Accept: accept },
      body,
      credentials: 'same-origin',
      redirect: 'error',
    });
  } catch {
    throw new Failure(0, 'The gateway does not answer.');
  }
  const text = await reply.text();
  if (reply.ok) return text;
  if (reply.status === 401 && path !== 'session') signedOut();
  let message = text;
  try {
    message = JSON.parse(text).error || text;
  } catch {
    // not JSON: the text is the message
  }
  throw new Failure(reply.status, message || `The gateway answered ${reply.status}.`);
}

const parsed = (text) => (text ? JSON.parse(text) : null);

export const session = {
  read: async () => parsed(await call('GET', 'session')),
  begin: async (proof) => parsed(await call('POST', 'session', JSON.stringify(proof))),
  end: () => call('DELETE', 'session'),
};

export const readManual = async () => parsed(await call('GET', 'manual'));

// query returns a path with parameters; empty ones are left out.
export function query(path, parameters = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== null && value !== '') q.set(name, value);
  const text = q.toString();
  return text ? path + '?' + text : path;
}

const begun = {};

// ahead begins to read what the first page will ask for, while the session is read. The first read of the path
// gets the answer, or reads itself if there is none.
export function ahead(path) {
  begun[path] = call('GET', 'api/' + path).catch(() => null);
}

export const readText = async (path, parameters) => {
  const at = query(path, parameters), early = begun[at];
  delete begun[at];
  return (await early) ?? call('GET', 'api/' + at);
};
export const read = async (path, parameters) => parsed(await readText(path, parameters));
export const change = async (path, body = {}) => parsed(await call('POST', 'api/' + path, JSON.stringify(body)));

// send sends an event, whose payload is a text, and returns the receipt.
export const send = async (source, type, text) => parsed(await call('POST', ['events', source, type].map(encodeURIComponent).join('/'), text, 'application/json'));
export const remove = async (path, parameters) => parsed(await call('DELETE', query('api/' + path, parameters)));

// A page that nobody touched for five minutes reads every half minute only, until it is touched again.
const [idleAfter, idleEvery] = [300e3, 30e3];
let touched = Date.now();
const idle = () => Date.now() - touched > idleAfter;
const touch = () => {
  const was = idle();
  touched = Date.now();
  if (was) dispatchEvent(new Event('touched'));
};
for (const e of ['pointermove', 'pointerdown', 'keydown', 'wheel', 'focus']) addEventListener(e, touch, { capture: true, passive: true });

// useRead reads with a function, again each time that one of the keys changes, and every so many
// milliseconds while the page is visible, if every is not 0. It returns {data, error, busy, again}. The
// data of the last success stay while it reads again.
export function useRead(load, keys, every = 0) {
  const [state, set] = useState({ busy: true });
  const newest = useRef(0);
  const again = useRef(() => {});
  const pause = useRef(every);
  pause.current = every;
  useEffect(() => {
    let timer;
    let over = false;
    const next = () => {
      clearTimeout(timer);
      if (!over && pause.current && document.visibilityState === 'visible') timer = setTimeout(() => pause.current && round(), idle() ? Math.max(pause.current, idleEvery) : pause.current);
    };
    const round = async () => {
      const mine = ++newest.current;
      let got;
      try {
        got = { data: await load() };
      } catch (error) {
        got = { error };
      }
      if (over || mine !== newest.current) return;
      set((last) => ({ data: last.data, ...got, busy: false }));
      next();
    };
    const seen = () => {
      if (pause.current && document.visibilityState === 'visible') round();
    };
    again.current = round;
    set((last) => ({ ...last, busy: true }));
    round();
    document.addEventListener('visibilitychange', seen);
    addEventListener('touched', seen);
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
      removeEventListener('touched', seen);
    };
  }, keys);
  const began = useRef(false);
  useEffect(() => {
    if (began.current && every) again.current(); // it goes on after a pause
    began.current = true;
  }, [every]);
  return { ...state, again: () => again.current() };
}
