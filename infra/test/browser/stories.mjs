// Stories of the operator console in a real browser. The first argument is a JSON text:
//
//   {"browser": "/usr/bin/...", "console": "http://.../console", "api": "http://...",
//    "tokens": {"read": "...", "operate": "...", "admin": "..."}, "pictures": "folder or empty",
//    "link": "an address of gateway console", "receiver": "http://...", "chapters": ["first-steps", ...], "curl": "gateway inspect --curl of the job of sent",
//    "pid": the gateway's, "file": "its configuration",
//    "stories": ["name", ...] or null for all but those of other gateways}
//
// Each story prints one line of JSON: {"story", "problem" or null, "ms"}, and what it measured as "figures"
// and "calls". Every page of every story
// fails on an error in the browser's console, which includes what the Content-Security-Policy refuses,
// and on a finding of axe where a story asks for it.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const given = JSON.parse(process.argv[2]);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// ofColors are the rules of axe whose findings depend on colors.
const ofColors = ['color-contrast', 'link-in-text-block'];

class Problem extends Error {}

const check = (ok, text) => {
  if (!ok) throw new Problem(text);
};

// api calls the gateway beside the browser, with all rights.
async function api(method, path, body) {
  const r = await fetch(given.api + path, { method, headers: { Authorization: 'Bearer ' + given.tokens.admin, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
  const text = await r.text();
  check(r.ok, `${method} ${path}: ${r.status} ${text}`);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// until waits until f returns a true value, and returns it.
async function until(what, f, ms = 15000) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await f();
    if (got) return got;
    check(Date.now() < end, `${what}: not within ${ms} ms`);
    await new Promise((r) => setTimeout(r, 50));
  }
}

// A Tab is a page of the browser, signed in with the token of a role.
class Tab {
  static async open(browser, { role = 'admin', at = '#/', scheme = 'light', width = 1280, height = 860, scripts = true, console: base = given.console } = {}) {
    const tab = new Tab();
    tab.base = base;
    tab.context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, javaScriptEnabled: scripts, reducedMotion: 'reduce' });
    tab.page = await tab.context.newPage();
    tab.errors = [];
    tab.page.on('console', (m) => {
      // The browser logs each refusal as an error, also one that the page explains.
      if (m.type() === 'error' && !/status of 4\d\d/.test(m.text())) tab.errors.push(m.text());
    });
    tab.page.on('pageerror', (e) => tab.errors.push(String(e.stack || e)));
    tab.page.setDefaultTimeout(10000);
    await tab.page.goto(base + at);
    if (role) await tab.signIn(given.tokens[role]);
    return tab;
  }

  async signIn(token) {
    await this.page.getByLabel('Token').fill(token);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
    await this.page.getByRole('navigation', { name: 'Pages' }).waitFor();
  }

  // go opens a view, and waits for its heading.
  async go(at, heading) {
    await this.page.goto(this.base + at);
    await this.heading(heading);
  }

  heading(name) {
    return this.page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  }

  async end() {
    await this.context.close();
    check(this.errors.length === 0, 'the browser reports: ' + this.errors.join('; '));
  }

  // press activates something by keyboard.
  async press(locator) {
    await locator.focus();
    await this.page.keyboard.press('Enter');
  }

  // picture takes a picture of the page, if pictures are wanted.
  async picture(name, fullPage = true) {
    if (given.pictures) await this.page.screenshot({ path: `${given.pictures}/${name}.png`, fullPage });
  }

  // all checks the page in light, in dark and in a narrow window, and takes a picture of each.
  async all(name) {
    const size = this.page.viewportSize();
    await this.bothSchemes(name);
    await this.page.setViewportSize({ width: 390, height: 800 });
    await this.picture(`${name}-narrow`);
    const wide = await this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${name}: the page is ${wide} pixels wider than a narrow window`);
    await this.page.setViewportSize(size);
  }

  // bothSchemes checks the page in light and in dark, and takes a picture of each. Dark differs from light
  // in colors alone, so axe looks at these alone there.
  async bothSchemes(name, file = name) {
    for (const scheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme: scheme });
      await this.clean(`${name}, ${scheme}`, scheme === 'dark' ? ofColors : undefined);
      await this.picture(`${file}-${scheme}`);
    }
    await this.page.emulateMedia({ colorScheme: 'light' });
  }

  // clean fails on what axe finds, by all rules or some.
  async clean(what, rules) {
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate((rules) => window.axe.run(rules ? { runOnly: { type: 'rule', values: rules } } : {}), rules);
    check(violations.length === 0, what + ': ' + violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].failureSummary}`).join('; '));
  }
}

// some returns the id of a job of a consumer, of its event, and of a run.
async function some(consumer) {
  const job = (await api('GET', `/api/jobs?handler=${encodeURIComponent(consumer)}&limit=1`)).jobs[0];
  const run = (await api('GET', '/api/workflow-runs?workflow=fulfil&limit=1')).workflow_runs[0];
  return { job: job.id, event: job.event_id, run: run.id };
}

const views = async () => {
  const { job, event, run } = await some('failing');
  const operation = (await api('GET', '/api/operations')).operations.find((o) => o.action === 'replay');
  return [
    ...(operation ? [[`#/operations/${operation.id}`, 'Replay events of source app of type order.created to queue/mail']] : []),
    ['#/', 'Overview'], ['#/events', 'Events'], [`#/events/${event}`, 'order.created'], ['#/jobs', 'Jobs'], [`#/jobs/${job}`, 'failing'], ['#/failures', 'Failures'], ['#/operations', 'Operations'],
    ['#/lines', 'Lines'], ['#/queues', 'Queues'], ['#/queues/mail', 'mail'], ['#/runs', 'Workflow runs'], [`#/runs/${run}`, 'fulfil'], ['#/schedules', 'Schedules'], ['#/holds', 'Holds'], ['#/configuration', 'Configuration'], ['#/audit', 'Audit'], ['#/manual', 'Manual'], ['#/manual/pull-queues', 'Pull queues'], ['#/nothing', 'Not found'],
  ];
};

const stories = {
  // An address of the command signs in, and its code does not stay. One that has expired says so.
  // It is the first story: the address counts for a minute.
  async 'a link that signs in'(browser) {
    const tab = await Tab.open(browser, { role: null, at: given.link.slice(given.console.length) });
    const { page } = tab;
    await tab.heading('Overview');
    check(!page.url().includes('code'), 'the address keeps the code: ' + page.url());
    await page.getByText('admin', { exact: true }).waitFor();
    await tab.end();
    const late = await Tab.open(browser, { role: null, at: '#/sign-in?code=1.00' });
    await late.page.getByRole('status').getByText('expired').waitFor();
    await late.page.getByLabel('Token').waitFor();
    await late.clean('sign in with an expired link');
    await late.end();
  },

  // A wrong token is refused in words, the right one opens the view that the address names, and
  // signing out ends the session.
  async 'sign in and out'(browser) {
    const tab = await Tab.open(browser, { role: null, at: '#/queues' });
    const { page } = tab;
    await page.getByLabel('Token').fill('not-a-token');
    await tab.clean('sign in');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('not one of').waitFor();
    await tab.signIn(given.tokens.read);
    await tab.heading('Queues');
    const cookies = await tab.context.cookies(given.console);
    check(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', 'cookies: ' + JSON.stringify(cookies));
    check((await tab.context.cookies(given.api + '/api/stats')).length === 0, 'the cookie is sent to the API');
    check(await page.evaluate(() => localStorage.length + sessionStorage.length) === 0, 'something is stored in the browser');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
    await tab.end();
  },

  // The first event: it arrives in the open listing, and its page shows the delivery.
  async 'first event'(browser) {
    const tab = await Tab.open(browser, { at: '#/events?source=fresh' });
    const { page } = tab;
    await page.getByText('No event matches.').waitFor();
    const type = page.getByRole('search').getByLabel('Type');
    await type.fill('half a word');
    await api('POST', '/events/fresh/hello.world', { greeting: 'hello' });
    const link = page.getByRole('link', { name: 'hello.world' });
    await link.waitFor();
    check((await type.inputValue()) === 'half a word', 'the listing that is read again takes away what was typed');
    await link.click();
    await tab.heading('hello.world');
    await page.getByRole('row', { name: /fresh-handler .*completed/ }).waitFor();
    await page.getByText('"greeting": "hello"').waitFor();
    await tab.end();
  },

  // A person sends an event from the page, by keyboard, and sees it delivered. A payload that is no JSON is
  // refused in words. Another event fails: its page shows it, and retries it with success.
  async 'send an event from the page'(browser) {
    const tab = await Tab.open(browser, { role: 'operate', at: '#/events?source=fresh' });
    const { page } = tab;
    const send = async (source, type, payload) => {
      await tab.press(page.getByRole('button', { name: 'Send an event' }));
      const dialog = page.getByRole('dialog', { name: 'Send an event' });
      if (source) await dialog.getByLabel('Source').selectOption(source);
      if (type) await dialog.getByLabel('Type').fill(type);
      await dialog.getByLabel('Payload').fill(payload);
      await tab.press(dialog.getByRole('button', { name: 'Send', exact: true }));
      return dialog;
    };
    const dialog = await send('', '', '{"big": 9223372036854775808');
    await dialog.getByRole('alert').getByText('The payload is not JSON').waitFor();
    await tab.clean('a payload that is no JSON');
    await tab.picture('send', false);
    check((await dialog.getByLabel('Source').inputValue()) === 'fresh', 'the source of the listing is not chosen');
    check((await dialog.getByLabel('Type').inputValue()) === 'hello.world', 'no type is suggested');
    check((await dialog.getByLabel('Source').locator('option').allInnerTexts()).join() === 'app,calm,depot,fresh', 'webhooks are offered');
    await dialog.getByLabel('Payload').fill('{"big": 9223372036854775808}');
    await tab.press(dialog.getByRole('button', { name: 'Send', exact: true }));
    await tab.heading('hello.world');
    await page.getByRole('status').getByText('The event is accepted.').waitFor();
    await page.getByRole('row', { name: /fresh-handler .*completed/ }).waitFor();
    await page.getByText('"big": 9223372036854775808').waitFor();
    await tab.go('#/', 'Overview');
    await send('calm', 'send.fragile', '{}');
    await tab.heading('send.fragile');
    await page.getByRole('row', { name: /fragile .*dead .*503/ }).waitFor();
    await fetch(given.receiver + '/mend-fragile');
    await tab.press(page.getByRole('row', { name: /fragile .*dead/ }).getByRole('button', { name: 'Retry' }));
    await tab.press(page.getByRole('dialog', { name: 'Retry' }).getByRole('button', { name: 'Retry' }));
    await page.getByRole('row', { name: /fragile .*completed/ }).waitFor();
    await tab.end();
  },

  // An open circuit breaker is seen on the overview, in the picture and in the table, and closed there.
  async 'close a circuit breaker'(browser) {
    for (let n = 0; n < 5; n++) await api('POST', '/events/calm/breaks', { n });
    const breaker = async () => (await api('GET', '/api/stats')).handlers.find((h) => h.name === 'breaking').circuit_breaker;
    await until('the breaker is open', async () => (await breaker()) === 'open');
    const tab = await Tab.open(browser, { role: 'operate' });
    const { page } = tab;
    await page.getByRole('link', { name: /breaking ✕ breaker open/ }).waitFor();
    const row = page.getByRole('region', { name: 'Consumers' }).getByRole('row', { name: /breaking / });
    await row.getByText(/breaker open$/).waitFor();
    await tab.clean('an open breaker');
    await fetch(given.receiver + '/mend-breaking');
    await tab.press(row.getByRole('button', { name: 'Close the breaker' }));
    const dialog = page.getByRole('dialog', { name: 'Close the breaker' });
    await dialog.getByText('Deliveries to breaking go on').waitFor();
    await tab.press(dialog.getByRole('button', { name: 'Close the breaker' }));
    await page.getByRole('status').getByText('The breaker of breaking is closed.').waitFor();
    // The closed dialog is in the row too, and its text says that the breaker opens again.
    await row.getByText(/breaker open$/).waitFor({ state: 'hidden' });
    check((await breaker()) === 'closed', 'the breaker is not closed');
    check((await page.getByRole('button', { name: 'Close the breaker' }).count()) === 0, 'a closed breaker can be closed');
    await tab.end();
  },

  // The curves have the numbers of the API, as pictures, in words and as a table, and go on by
  // themselves.
  async 'curves'(browser) {
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    const kinds = { accepted: 'Events accepted', completed: 'Deliveries completed', failed: 'Attempts failed', dead: 'Jobs died' };
    const tab = await Tab.open(browser, { role: 'read' });
    const { page } = tab;
    // shown waits until the pictures say what the API says. Both go on, so both are read again and again.
    const shown = (window, of) => until(`the curves of ${of || 'all'} in the last ${window}`, async () => {
      const s = await api('GET', '/api/series?window=' + window);
      const rows = [...s.sources.map((r) => ({ ...r, name: 'source/' + r.name })), ...s.consumers].filter((r) => !of || r.name === of);
      const now = {};
      for (const [key, words] of Object.entries(kinds)) {
        const lists = rows.map((r) => r[key]).filter(Boolean);
        const picture = page.getByRole('img', { name: words });
        if (!lists.length && (await picture.count()) === 0) continue;
        now[key] = sum(lists.map(sum));
        const said = now[key] ? `${words} in the last ${window}: ${now[key].toLocaleString('en')}, at most` : `${words} in the last ${window}: none`;
        if ((await page.getByRole('img', { name: said }).count()) !== 1) return null;
      }
      return now;
    }, 40000);
    const all = await shown('hour');
    check(all.accepted > 1000 && all.dead > 60 && all.failed > all.dead, 'the last hour: ' + JSON.stringify(all));
    // The same as a table.
    await page.getByText('Numbers').click();
    const table = page.getByRole('table', { name: 'The last hour' });
    await table.waitFor();
    const cells = await table.locator('tbody tr td:nth-child(2)').allInnerTexts();
    check(cells.length === 60 && sum(cells.map((c) => Number(c.replaceAll(',', '')))) > 1000, 'the table has ' + cells);
    await tab.clean('curves with the table');
    // What comes in is in the picture without a reload.
    await page.getByLabel('Source or consumer').selectOption('source/calm');
    await page.waitForURL(/of=source%2Fcalm/);
    const calm = await shown('hour', 'source/calm');
    check(Object.keys(calm).join() === 'accepted', 'a source has ' + JSON.stringify(calm));
    await api('POST', '/events/calm/curved', {});
    await page.getByRole('img', { name: `Events accepted in the last hour: ${calm.accepted + 1}, at most` }).waitFor({ timeout: 30000 });
    // A day, and one consumer, have an address of their own.
    await page.getByLabel('Curves of').selectOption('day');
    await page.waitForURL(/window=day/);
    await page.getByLabel('Source or consumer').selectOption('failing');
    await page.waitForURL(/of=failing/);
    await page.reload();
    const failing = await shown('day', 'failing');
    check(failing.completed === 0 && failing.failed === 30 && failing.dead === 30, 'failing has ' + JSON.stringify(failing));
    if (given.pictures) await page.screenshot({ path: given.pictures + '/curves-of-one.png', fullPage: true });
    await tab.end();
  },

  // One failed delivery among many: by its error to the job, what was answered, and retried.
  async 'find a failure and retry it'(browser) {
    const tab = await Tab.open(browser);
    const { page } = tab;
    await page.getByRole('link', { name: /^Failures/ }).click();
    await tab.heading('Failures');
    await page.getByRole('row', { name: /status: 418 .*rare/ }).getByRole('link').click();
    await tab.heading('rare');
    await page.getByText('Reply', { exact: true }).first().click();
    await page.getByText('I am a teapot').waitFor();
    await page.getByRole('button', { name: 'Retry' }).click();
    const dialog = page.getByRole('dialog', { name: 'Retry' });
    await dialog.getByText('tried again now').waitFor();
    await dialog.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('status').getByText('tried again').waitFor();
    await page.getByText('Attempt 2').waitFor();
    await tab.end();
  },

  // What an attempt sent and what was answered: headers of both sides, the body that a transform made,
  // and the command that sends it again, which is the text of gateway inspect --curl. Secrets are masked.
  async 'see what was sent and answered'(browser) {
    const tab = await Tab.open(browser, { role: 'read', at: '#/jobs?handler=sent' });
    const { page } = tab;
    await tab.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await tab.press(page.getByRole('row', { name: /sent .*dead/ }).getByRole('link', { name: 'sent' }));
    await tab.heading('sent');
    await tab.press(page.getByText('Request', { exact: true }));
    await page.getByText(/^POST .*\/sent\?key=\*\*\*$/).waitFor();
    const headers = await page.getByLabel('Headers that were sent').innerText();
    check(/X-Api-Key\s+\*\*\*/.test(headers), 'headers that were sent: ' + headers);
    await tab.press(page.getByRole('button', { name: 'Show the body' }));
    await page.getByLabel('Body that was sent').getByText('"number": 1').waitFor();
    await tab.press(page.getByText('Reply', { exact: true }));
    await page.getByLabel('Headers of the reply').getByText('no-such-customer').waitFor();
    await page.getByLabel('Body of the reply').getByText('"why": "unknown"').waitFor();
    await tab.press(page.getByRole('button', { name: 'Copy as curl' }));
    await page.getByRole('status').getByText('Copied.').waitFor();
    const curl = await page.evaluate(() => navigator.clipboard.readText());
    check(curl === given.curl, `the page copies ${curl}, the command prints ${given.curl}`);
    await page.getByText('Set first: GATEWAY_HEADER_X_API_KEY, GATEWAY_QUERY_KEY.').waitFor();
    check(!/sesame-open|a-key-of/.test(await page.locator('main').innerText()), 'the page shows a secret');
    await tab.all('sent');
    const { job } = await some('failing');
    await tab.go(`#/jobs/${job}`, 'failing');
    await page.getByText('What was sent is not recorded').waitFor();
    check((await page.getByText('Copy as curl').count()) === 0, 'a request that was not recorded can be copied');
    await tab.end();
  },

  // All dead jobs of a handler: the question names their number, and nothing happens before it is
  // answered. The page then goes to the operation, and shows it live to its end.
  async 'retry all that match and watch it'(browser) {
    const dead = async (name) => (await api('GET', '/api/stats')).handlers.find((h) => h.name === name).dead;
    const n = await dead('mended');
    check(n > 20, `${n} dead jobs of mended, want more`);
    const tab = await Tab.open(browser, { role: 'operate', at: '#/jobs?handler=mended&status=dead' });
    const { page } = tab;
    await tab.press(page.getByRole('button', { name: 'Retry all that match' }));
    const dialog = page.getByRole('dialog', { name: 'Retry all that match' });
    await dialog.getByText(`${n} jobs are retried: dead jobs of mended.`).waitFor();
    await tab.clean('the question of an operation');
    await tab.picture('operation-question');
    await tab.press(dialog.getByRole('button', { name: 'Leave it' }));
    check((await dead('mended')) === n && (await api('GET', '/api/operations')).operations.length === 0, 'a refused question changed something');
    await tab.press(page.getByRole('button', { name: 'Retry all that match' }));
    await dialog.getByLabel('At most, in a second').selectOption('10');
    await dialog.getByText('at 10 jobs a second').waitFor();
    await tab.press(dialog.getByRole('button', { name: 'Retry all that match' }));
    await tab.heading('Retry dead jobs of mended');
    const progress = page.getByRole('progressbar', { name: 'Progress' });
    await until('the progress moves', async () => {
      const v = await progress.evaluate((p) => p.value / p.max);
      return v > 0 && v < 1;
    });
    await page.getByText(`of ${n};`).waitFor();
    await tab.picture('operation-running');
    await page.locator('.state').getByText('finished').waitFor();
    await page.getByText(`${n} retried`).first().waitFor();
    check((await progress.evaluate((p) => p.value / p.max)) === 1, 'the progress of a finished operation is not full');
    await until('the jobs are completed', async () => (await dead('mended')) === 0);
    await page.reload();
    await page.getByText(`${n} retried`).first().waitFor();
    await tab.press(page.getByRole('link', { name: '← Operations' }));
    await tab.heading('Operations');
    await page.getByRole('row', { name: new RegExp(`Retry dead jobs of mended .*finished.* ${n} retried on-call`) }).waitFor();

    // Another one is canceled: what it did not reach stays dead. Nothing is left to retry of mended.
    await tab.go('#/jobs?handler=failing&status=dead', 'Jobs');
    await page.getByRole('button', { name: 'Retry all that match' }).click();
    await dialog.getByLabel('At most, in a second').selectOption('10');
    await dialog.getByText('at 10 jobs a second').waitFor();
    await dialog.getByRole('button', { name: 'Retry all that match' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    const cancel = page.getByRole('dialog', { name: 'Cancel' });
    await cancel.getByText('stays done').waitFor();
    await cancel.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.locator('.state').getByText('canceled').waitFor();
    const { acted, state } = (await api('GET', '/api/operations?limit=1')).operations[0];
    check(state === 'canceled' && acted < 30, `the operation is ${state}, and acted on ${acted}`);
    await tab.go('#/jobs?handler=mended&status=dead', 'Jobs');
    await page.getByRole('button', { name: 'Retry all that match' }).click();
    await dialog.getByText('Nothing matches now').waitFor();
    check((await dialog.getByRole('button', { name: 'Retry all that match' }).count()) === 0, 'nothing can be retried');
    await tab.end();
  },

  // One error of one consumer is retried from the list of failures, and an event and all that match are
  // replayed to one consumer of several.
  async 'retry one error and replay to one consumer'(browser) {
    const tab = await Tab.open(browser, { role: 'operate', at: '#/failures' });
    const { page } = tab;
    await tab.press(page.getByRole('row', { name: /status: 422 .*sent/ }).getByRole('button', { name: 'Retry these' }));
    const retry = page.getByRole('dialog', { name: 'Retry these' });
    await retry.getByText('1 job is retried: dead jobs of sent whose error contains “status: 422').waitFor();
    await tab.press(retry.getByRole('button', { name: 'Retry these' }));
    await page.locator('.state').getByText('finished').waitFor();
    const event = (await api('GET', '/api/events?event_type=order.created&limit=1')).events[0].id;
    await tab.go('#/events/' + event, 'order.created');
    await tab.press(page.getByRole('button', { name: 'Replay' }));
    const one = page.getByRole('dialog', { name: 'Replay' });
    await one.getByLabel('For').selectOption('queue/mail');
    await one.getByText('a new job for queue/mail').waitFor();
    await tab.press(one.getByRole('button', { name: 'Replay' }));
    await page.getByRole('status').getByText('1 job made.').waitFor();
    await until('the second message is shown', async () => (await page.getByRole('row', { name: /^queue\/mail/ }).count()) === 2);
    await tab.go('#/events?source=app&type=order.created', 'Events');
    await tab.press(page.getByRole('button', { name: 'Replay all that match' }));
    const many = page.getByRole('dialog', { name: 'Replay all that match' });
    await many.getByText('30 events are replayed: events of source app of type order.created.').waitFor();
    await many.getByLabel('For').selectOption('queue/mail');
    await many.getByText('New jobs: 30 for queue/mail.').waitFor();
    await tab.picture('replay-question');
    await tab.press(many.getByRole('button', { name: 'Replay all that match' }));
    await page.locator('.state').getByText('finished').waitFor();
    await page.getByText('30 replayed').first().waitFor();
    await tab.end();
  },

  // A line that a dead job stops is found, with the jobs that wait in it. Its job is skipped, and the
  // line goes on. All by keyboard.
  async 'a stopped line is found and its job skipped'(browser) {
    const tab = await Tab.open(browser, { role: 'operate' });
    const { page } = tab;
    await tab.press(page.getByRole('link', { name: 'Lines 1 stopped line' }));
    await tab.heading('Lines');
    await page.getByText('stops its line, until it is retried or skipped').waitFor();
    check((await page.getByLabel('Consumer').inputValue()) === 'ordered', 'the consumer with the stopped line is not chosen');
    await tab.picture('lines');
    await tab.press(page.getByRole('row', { name: /c-stop .*stopped 1 2/ }).getByRole('link', { name: 'c-stop' }));
    await tab.heading('c-stop');
    await page.getByText(/2 jobs of this line wait since/).waitFor();
    check((await page.getByRole('row', { name: /waits for its line/ }).count()) === 2, 'the jobs that wait are not shown');
    await tab.all('line');
    await tab.press(page.getByRole('link', { name: 'a dead job' }));
    await tab.heading('ordered');
    await tab.press(page.getByRole('link', { name: 'c-stop' }));
    await tab.heading('c-stop');
    await tab.press(page.getByRole('button', { name: 'Skip' }));
    const dialog = page.getByRole('dialog', { name: 'Skip' });
    await dialog.getByText('Line c-stop goes on without this job, which stays dead.').waitFor();
    await tab.press(dialog.getByRole('button', { name: 'Skip' }));
    await page.getByRole('status').getByText('The line goes on.').waitFor();
    await page.getByText('This line has no jobs.').waitFor();
    const done = await api('GET', '/api/jobs?handler=ordered&limit=10');
    check(done.jobs.map((j) => j.status).sort().join() === 'completed,completed,dead', 'the jobs of the line are ' + done.jobs.map((j) => j.status));
    await tab.go('#/lines?consumer=mended', 'Lines');
    await page.getByText('A dead job is skipped.').waitFor();
    await tab.end();
  },

  // A run is followed through its graph: the step that failed is seen, in the drawing and in the table,
  // its error, its input and the reply are read, the run is redriven, and ends.
  async 'follow a run and redrive it'(browser) {
    await api('POST', '/events/depot/parcel.ready', { total: 20, items: ['tea', 'cup', 'pot'] });
    const run = await until('a run of ship has failed', async () => (await api('GET', '/api/workflow-runs?workflow=ship&status=failed')).workflow_runs[0]);
    for (const [name, how] of Object.entries({ wide: {}, narrow: { width: 390, height: 800 } })) {
      const tab = await Tab.open(browser, { ...how, at: `#/runs/${run.id}?step=prepare%2Flabel` });
      await tab.heading('ship');
      await tab.page.getByRole('region', { name: 'Step prepare/label' }).getByText('failed').waitFor();
      check((await tab.page.getByRole('region', { name: 'Graph of the run' }).isVisible()) === (name === 'wide'), name + ': the drawing is not where it fits, or where it does not');
      if (name === 'wide') await tab.bothSchemes('a failed run', 'a-failed-run');
      else await tab.picture('a-failed-run-narrow');
      await tab.end();
    }
    const tab = await Tab.open(browser, { role: 'operate', at: '#/runs?workflow=ship' });
    const { page } = tab;
    await page.getByRole('link', { name: 'ship' }).first().click();
    await tab.heading('ship');
    const graph = page.getByRole('region', { name: 'Graph of the run' });
    const node = (name, state) => graph.locator('.g-' + state).filter({ hasText: new RegExp(name) });
    await node('label', 'failed').waitFor();
    await node('check', 'succeeded').waitFor();
    check((await node('tell', 'none').count()) === 1 && (await node('approve', 'none').count()) === 1, 'steps that were not reached are not shown so');
    const table = page.getByRole('region', { name: 'Steps of the definition' });
    await table.getByRole('row', { name: /prepare .*failed parallel/ }).waitFor();
    await table.getByRole('row', { name: /route .*succeeded choice .*approve \(.*1000\), prepare \(else\)/ }).waitFor();
    await table.getByRole('row', { name: /tell not reached http/ }).waitFor();
    await graph.getByRole('link', { name: /^label/ }).click();
    const step = page.getByRole('region', { name: 'Step prepare/label' });
    await step.getByText('status: 500').waitFor();
    await step.getByText('"total": 20').waitFor();
    await step.getByRole('link', { name: 'of its job' }).click();
    await page.getByText('Reply', { exact: true }).first().click();
    await page.getByText('the printer has no paper').waitFor();
    await page.goBack();

    await fetch(given.receiver + '/mend-printer');
    await page.getByRole('button', { name: 'Redrive', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Redrive', exact: true });
    await dialog.getByText(`Run ${run.id} of ship goes on where it ended, at prepare.`).waitFor();
    await tab.clean('the question before a redrive');
    await dialog.getByRole('button', { name: 'Redrive' }).click();
    await page.getByRole('status').getByText('The run goes on').waitFor();
    await node('tell', 'succeeded').waitFor();
    await node('label', 'succeeded').waitFor();
    await node('box', 'succeeded').locator('.state').getByText('3 succeeded').waitFor();
    await page.getByText('completed').first().waitFor();
    check((await api('GET', '/api/workflow-runs/' + run.id)).epoch === 2, 'the run was not redriven once');
    await page.getByText('Every step and the history').click();
    await page.getByRole('region', { name: 'History' }).getByRole('row', { name: /redriven/ }).waitFor();
    await tab.end();
  },

  // A run that waits is canceled; the question says what that means. A history of many pages is read page
  // by page.
  async 'cancel a run and page through its history'(browser) {
    const items = Array.from({ length: 120 }, (_, i) => 'item ' + i);
    await api('POST', '/events/depot/parcel.ready', { total: 2000, items });
    const run = await until('a run of ship waits', async () => (await api('GET', '/api/workflow-runs?workflow=ship&status=running')).workflow_runs[0]);
    const tab = await Tab.open(browser, { role: 'operate', at: '#/runs/' + run.id });
    const { page } = tab;
    await tab.heading('ship');
    await page.getByRole('region', { name: 'Graph of the run' }).locator('.g-waiting').filter({ hasText: 'approve' }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel' });
    await dialog.getByText(`Run ${run.id} of ship ends as canceled, at approve.`).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('status').getByText('The run is canceled').waitFor();
    await page.getByRole('region', { name: 'Graph of the run' }).locator('.g-canceled').filter({ hasText: 'approve' }).waitFor();
    await page.getByRole('button', { name: 'Redrive from the start' }).waitFor();

    await api('POST', '/events/depot/parcel.ready', { total: 1, items });
    const large = await until('a run of 120 items has completed', async () => (await api('GET', '/api/workflow-runs?workflow=ship&status=completed')).workflow_runs.find((r) => r.id > run.id), 60000);
    await tab.go('#/runs/' + large.id, 'ship');
    await page.getByRole('region', { name: 'Graph of the run' }).locator('.state').getByText('120 succeeded').waitFor();
    await page.getByText('Every step and the history').click();
    const seen = new Set();
    // shown returns the paths on the page, its first text, and whether it is the last one.
    const shown = () => page.evaluate(() => ({
      paths: [...document.querySelectorAll('.tries strong')].map((e) => e.innerText), first: document.querySelector('.tries strong, [aria-label=History] tbody tr')?.innerText,
      end: document.body.innerText.includes('This is the end'),
    }));
    for (let pages = 1, first; ; pages++) {
      const now = await until('page ' + pages, async () => {
        const now = await shown();
        return now.first && now.first !== first && now;
      });
      first = now.first;
      check(now.paths.length <= 50, `${now.paths.length} steps on a page`);
      for (const path of now.paths) check(!seen.has(path) && seen.add(path), 'shown twice: ' + path);
      if (now.end) {
        check(pages >= 5, `the story has ${pages} pages`);
        break;
      }
      const at = page.url();
      await page.getByRole('link', { name: 'Further' }).click();
      await page.waitForURL((u) => u.href !== at);
    }
    check(seen.size === 127, `${seen.size} steps, want 127`);
    await tab.end();
  },

  // All runs that match are redriven: the question names their number, and that they begin anew.
  async 'redrive all that match'(browser) {
    const made = [];
    for (const total of [3000, 4000]) {
      const { event_id } = JSON.parse(await (await fetch(given.api + '/events/depot/parcel.ready', { method: 'POST', headers: { Authorization: 'Bearer ' + given.tokens.admin, 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify({ total, items: [] }) })).text());
      const run = await until('a run waits for approval', async () => (await api('GET', '/api/workflow-runs?event_id=' + event_id)).workflow_runs.find((r) => r.current_step === 'approve'));
      await api('POST', `/api/workflow-runs/${run.id}/cancel`);
      made.push(run.id);
    }
    const canceled = async () => (await api('GET', '/api/workflow-runs?workflow=ship&status=canceled')).workflow_runs;
    const n = (await canceled()).length;
    check(n >= 2, `${n} runs are canceled`);
    const tab = await Tab.open(browser, { role: 'operate', at: '#/runs?workflow=fulfil' });
    const { page } = tab;
    await tab.press(page.getByRole('button', { name: 'Redrive failed runs' }));
    await page.getByRole('dialog', { name: 'Redrive failed runs' }).getByText('Nothing matches now: failed runs of workflow/fulfil.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Status').selectOption('running');
    await page.waitForURL(/status=running/);
    await page.getByRole('button', { name: /Redrive/ }).waitFor({ state: 'hidden' });
    await tab.go('#/runs?workflow=ship&status=canceled', 'Workflow runs');
    await tab.press(page.getByRole('button', { name: 'Redrive all that match' }));
    const dialog = page.getByRole('dialog', { name: 'Redrive all that match' });
    await dialog.getByText(`${n} runs are redriven: canceled runs of workflow/ship.`).waitFor();
    await dialog.getByText('begins anew with its first step').waitFor();
    await tab.clean('the question before a redrive of many');
    await tab.picture('redrive-question', false);
    check((await canceled()).length === n, 'runs are redriven before the question is answered');
    await tab.press(dialog.getByRole('button', { name: 'Redrive all that match' }));
    await tab.heading('Redrive canceled runs of workflow/ship');
    await page.locator('.state').getByText('finished').waitFor();
    await page.getByText(`${n} redriven`).first().waitFor();
    check((await canceled()).length === 0, 'some runs are canceled still');
    for (const id of made) check((await api('GET', '/api/workflow-runs/' + id)).epoch === 2, `run ${id} was not redriven once`);
    await tab.press(page.getByRole('link', { name: 'Workflow runs', exact: true }).last());
    await page.waitForURL(/runs\?workflow=ship/);
    await tab.heading('Workflow runs');
    await tab.end();
  },

  // A handler is held with a reason, its job says why it waits, and it is released.
  async 'hold and release'(browser) {
    const tab = await Tab.open(browser, { role: 'operate', at: '#/holds' });
    const { page } = tab;
    await page.getByRole('button', { name: 'Hold', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Hold' });
    await dialog.getByLabel('What to hold').selectOption('paused');
    await dialog.getByLabel('Why').fill('moving the database');
    await dialog.getByRole('button', { name: 'Hold', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('row', { name: /paused .*moving the database/ }).waitFor();
    await api('POST', '/events/calm/while.held', { n: 1 });
    const job = await until('a job of paused', async () => (await api('GET', '/api/jobs?handler=paused&status=available')).jobs[0]);
    await tab.go(`#/jobs/${job.id}`, 'paused');
    await page.getByText('waits for the hold').waitFor();
    await page.getByText('moving the database').waitFor();
    await tab.go('#/holds', 'Holds');
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog', { name: 'Release' }).getByRole('button', { name: 'Release' }).click();
    await page.getByText('Nothing is held.').waitFor();
    await tab.go(`#/jobs/${job.id}`, 'paused');
    await page.getByText('completed').first().waitFor();
    // A queue is held and released on its own page.
    await tab.go('#/queues/mail', 'mail');
    await page.getByRole('button', { name: 'Hold', exact: true }).click();
    await dialog.getByRole('button', { name: 'Hold', exact: true }).click();
    await page.getByText('Held since').waitFor();
    check((await api('GET', '/api/holds')).holds.map((h) => h.target).join() === 'queue/mail', 'the queue is not held');
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog', { name: 'Release' }).getByRole('button', { name: 'Release' }).click();
    await page.getByText('Held since').waitFor({ state: 'hidden' });
    await tab.end();
  },

  // A schedule is fired beside its times.
  async 'fire a schedule'(browser) {
    const tab = await Tab.open(browser, { role: 'operate', at: '#/schedules' });
    const { page } = tab;
    await tab.press(page.getByRole('row', { name: /nightly/ }).getByRole('button', { name: 'Fire now' }));
    const dialog = page.getByRole('dialog');
    await dialog.getByText('An event of nightly is made now, beside').waitFor();
    await tab.press(dialog.getByRole('button', { name: 'Fire now' }));
    await page.getByText('nightly was fired: 1 job.').waitFor();
    await tab.all('schedules');
    const { events } = await api('GET', '/api/events?source=nightly');
    check(events.length === 1 && events[0].event_type === 'cron.tick', 'events of nightly: ' + JSON.stringify(events));
    await tab.end();
  },

  // The page follows a reload, and one that is refused.
  async 'the last reload'(browser) {
    const tab = await Tab.open(browser, { role: 'read', at: '#/configuration' });
    const { page } = tab;
    await page.getByText('Loaded', { exact: true }).waitFor();
    check((await page.getByText('Last reload').count()) === 0, 'a reload is shown before the first');
    const text = readFileSync(given.file, 'utf8');
    for (const [more, result] of [['', 'unchanged'], ['\nsauces: {}\n', 'invalid']]) {
      writeFileSync(given.file, text + more);
      process.kill(given.pid, 'SIGHUP');
      await until(result, async () => (await api('GET', '/api/config')).last_reload?.result === result);
      await page.keyboard.press('r');
      await page.locator('.facts .status', { hasText: result }).waitFor();
      await page.getByText('by signal').waitFor();
    }
    await page.getByText(/sauces/).waitFor();
    await tab.all('configuration');
    writeFileSync(given.file, text);
    process.kill(given.pid, 'SIGHUP');
    await until('unchanged', async () => (await api('GET', '/api/config')).last_reload.result === 'unchanged');
    await tab.end();
  },

  // An event is found by a value in its payload; a filter that is wrong is told.
  async 'find by payload'(browser) {
    const tab = await Tab.open(browser, { role: 'read', at: '#/events' });
    const { page } = tab;
    await page.getByLabel('Payload matches').fill('$.customer.id == "c-needle"');
    await page.keyboard.press('Enter');
    await page.getByText('1 event found').waitFor();
    await page.getByRole('link', { name: 'order.created' }).click();
    await page.getByText('"id": "c-needle"').waitFor();
    // The field gets the focus as soon as it is drawn, and the page leaves it there.
    await page.evaluate(() => new MutationObserver((_, observer) => {
      const field = document.querySelector('main input[name=match]');
      if (!field) return;
      observer.disconnect();
      field.focus();
    }).observe(document.body, { childList: true, subtree: true }));
    await page.goBack();
    await page.waitForFunction(() => document.title.startsWith('Events'));
    check(await page.evaluate(() => document.activeElement.name) === 'match', 'the page took the focus from the search');
    await page.getByLabel('Payload matches').fill('$.customer.id ==');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await tab.end();
  },

  // The address of a view opens the same view in another browser.
  async 'an address for each view'(browser) {
    const first = await Tab.open(browser, { at: '#/jobs' });
    await first.page.getByLabel('Status').selectOption('dead');
    await first.page.waitForURL(/status=dead/);
    await first.page.getByLabel('Consumer').selectOption('failing');
    await first.page.waitForURL(/handler=failing/);
    const at = first.page.url().slice(given.console.length);
    await first.end();
    const second = await Tab.open(browser, { at });
    await until('the second browser shows the same at ' + at, async () => (await second.page.getByLabel('Status').inputValue()) === 'dead' && (await second.page.getByLabel('Consumer').inputValue()) === 'failing');
    await second.end();
  },

  // A reader sees no button of a change, and the server refuses every one.
  async 'a reader changes nothing'(browser) {
    const tab = await Tab.open(browser, { role: 'read' });
    check((await tab.page.getByRole('link', { name: 'Audit' }).count()) === 0, 'a reader is led to the audit');
    for (const [at, heading] of (await views()).filter(([at]) => at !== '#/audit')) {
      await tab.go(at, heading);
      for (const name of ['Retry', 'Retry dead jobs', 'Retry all that match', 'Retry these', 'Cancel all that match', 'Replay', 'Replay all that match', 'Cancel', 'Skip', 'Drain', 'Hold', 'Release', 'Redrive', 'Redrive failed runs', 'Send an event', 'Close the breaker'])
        check((await tab.page.getByRole('button', { name, exact: true }).count()) === 0, `${heading} has the button ${name}`);
    }
    const { job } = await some('failing');
    const refused = await tab.page.evaluate(async (paths) => {
      const all = [];
      for (const [method, path] of paths) all.push((await fetch('console/api/' + path, { method, headers: { 'Content-Type': 'application/json' }, body: method === 'POST' ? '{}' : undefined })).status);
      return all;
    }, [['POST', `jobs/${job}/retry`], ['POST', 'jobs/retry'], ['POST', 'events/replay'], ['POST', 'holds'], ['DELETE', 'holds?target=failing'], ['POST', 'queues/mail/drain'], ['POST', 'operations']]);
    check(refused.every((s) => s === 403), 'statuses: ' + refused);
    await tab.end();
  },

  // Payloads are texts: nothing of them runs, hides or changes.
  async 'hostile payloads'(browser) {
    const sent = {
      html: '{"html":"<img src=x onerror=alert(1)><script>alert(2)</script>"}',
      bidi: JSON.stringify({ bidi: 'abc\u202egnp.exe\u2066', zero: '\ufeff' }),
      number: '{"big":9223372036854775808,"small":1.0000000000000000000001,"b":1,"a":2,"10":3,"9":4}',
      large: JSON.stringify({ large: 'x'.repeat(1 << 20).slice(200) }),
    };
    const tab = await Tab.open(browser, { role: 'read' });
    const { page } = tab;
    page.on('dialog', () => tab.errors.push('a payload ran'));
    const seen = {};
    for (const [name, body] of Object.entries(sent)) {
      const r = await fetch(given.api + '/events/calm/hostile.' + name, { method: 'POST', headers: { Authorization: 'Bearer ' + given.tokens.admin, 'Content-Type': 'application/json' }, body });
      check(r.ok, `${name}: ${r.status} ${await r.text()}`);
      const event = (await api('GET', '/api/events?event_type=hostile.' + name)).events[0];
      await tab.go('#/events/' + event.id, 'hostile.' + name);
      seen[name] = await page.getByLabel('Payload', { exact: true }).innerText();
    }
    check(seen.html.includes('<img src=x onerror=alert(1)>'), 'html is shown as ' + seen.html);
    check(seen.bidi.includes('⟨U+202E⟩') && seen.bidi.includes('⟨U+FEFF⟩') && !/[\u202e\u2066\ufeff]/.test(seen.bidi), 'bidi is shown as ' + seen.bidi);
    check(seen.number.replace(/\s/g, '') === sent.number, 'numbers are shown as ' + seen.number);
    check(seen.large.length < 70000, `the first ${seen.large.length} characters of a large payload are shown`);
    await page.getByRole('button', { name: /Show all/ }).click({ timeout: 60000 }); // a line of a MiB is slow to lay out
    check((await page.getByLabel('Payload', { exact: true }).innerText()).length > 1 << 19, 'a large payload is not shown in full');
    await tab.end();
  },

  // Without a mouse: from the overview to an event, and back, by keys.
  async 'keys'(browser) {
    const tab = await Tab.open(browser, { role: null });
    const { page } = tab;
    await page.locator('input[name=token]:focus').waitFor(); // the field has the focus a moment after it is shown
    await page.keyboard.type(given.tokens.operate);
    await page.keyboard.press('Enter');
    await tab.heading('Overview');
    const names = [];
    for (let i = 0; i < 30; i++) {
      names.push(await page.evaluate(() => document.activeElement.innerText));
      if (names.at(-1) === 'Events') break;
      await page.keyboard.press('Shift+Tab');
    }
    check(names.at(-1) === 'Events', 'the tabulator comes to ' + names.join(', '));
    await page.keyboard.press('Enter');
    await tab.heading('Events');
    await page.getByRole('link', { name: /order|hostile|hello/ }).first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const second = await page.evaluate(() => document.activeElement.getAttribute('href'));
    check(second?.startsWith('#/events/'), 'j goes to ' + second);
    await page.keyboard.press('k');
    check((await page.evaluate(() => document.activeElement.getAttribute('href'))) !== second, 'k stays');
    await page.keyboard.press('Enter');
    await page.waitForURL(/events\/0/);
    await page.goBack();
    await tab.heading('Events');
    await page.keyboard.press('/');
    check(await page.evaluate(() => document.activeElement.name) === 'source', '/ does not go to the search');
    await page.keyboard.press('Escape');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys and times' });
    await help.waitFor();
    await tab.clean('keys');
    await help.getByRole('button', { name: 'Turn keys off' }).click();
    await help.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('?');
    check(!(await help.isVisible()), 'keys that are turned off work');
    check(/keys=off/.test(page.url()), 'the address does not say that keys are off: ' + page.url());
    await tab.end();
  },

  // The switch of the theme is in the address, and counts more than the system.
  async 'light and dark'(browser) {
    const tab = await Tab.open(browser, { scheme: 'dark' });
    const { page } = tab;
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await page.keyboard.press('t');
    await page.waitForURL(/theme=light/);
    const light = await ground();
    check(light !== dark, 'light is as dark as dark: ' + light);
    await page.reload();
    await tab.heading('Overview');
    check((await ground()) === light, 'a reload forgets the theme');
    await tab.end();
  },

  // A stream of events can be paused.
  async 'pause'(browser) {
    const tab = await Tab.open(browser, { at: '#/events?type=paused.stream' });
    const { page } = tab;
    await page.getByText('No event matches.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await api('POST', '/events/calm/paused.stream', {});
    await page.waitForTimeout(3500);
    check((await page.getByRole('link', { name: 'paused.stream' }).count()) === 0, 'a paused listing changes');
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('link', { name: 'paused.stream' }).waitFor();
    await tab.end();
  },

  // A word is found in the manual by keyboard, also without a network once the manual was read. All links
  // between chapters lead somewhere, and no mark of the texts is left.
  async 'find a word in the manual'(browser) {
    const tab = await Tab.open(browser, { role: 'read' });
    const { page } = tab;
    await tab.press(page.getByRole('link', { name: 'Manual' }));
    await tab.heading('Manual');
    await page.getByRole('link', { name: 'First steps' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('visibility timeout');
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText(/sections with all of these words/).waitFor();
    await page.locator('mark').first().waitFor();
    await tab.all('manual-search');
    await tab.context.setOffline(true);
    await tab.press(page.getByRole('link', { name: /^Pull queues/ }).first());
    await tab.heading('Pull queues');
    check(await page.evaluate(() => document.activeElement.closest('article') !== null || document.activeElement.tagName === 'H1'), 'the focus is not at the section');
    await tab.picture('manual-chapter', false);
    check((await page.locator('article pre').count()) > 0, 'the chapter has no code');
    const links = new Set(), anchors = new Set();
    await page.setViewportSize({ width: 390, height: 800 });
    for (const name of given.chapters) {
      await page.evaluate((n) => { location.hash = '#/manual/' + n; }, name);
      await page.waitForFunction((n) => location.hash === '#/manual/' + n && document.querySelector('article'), name);
      const seen = await page.evaluate(() => {
        const copy = document.querySelector('article').cloneNode(true);
        copy.querySelectorAll('code, pre').forEach((c) => c.remove());
        return { wide: document.documentElement.scrollWidth - document.documentElement.clientWidth, text: copy.textContent, links: [...document.querySelectorAll('article a')].map((a) => a.getAttribute('href')), ids: [...document.querySelectorAll('article [id]')].map((e) => e.id) };
      });
      check(!/\*\*|`|\]\(|^\||^#/m.test(seen.text), `${name} has marks left: ${/.{30}(\*\*|`|\]\(|^\||^#).{30}/m.exec(seen.text)?.[0]}`);
      check(seen.wide <= 0, `${name} is ${seen.wide} pixels wider than a narrow window`);
      check(new Set(seen.ids).size === seen.ids.length, `${name} has two headings with an anchor`);
      for (const id of seen.ids) anchors.add(`#/manual/${name}?at=${id.slice(2)}`);
      anchors.add('#/manual/' + name);
      for (const l of seen.links) if (l.startsWith('#')) links.add(l);
    }
    check(links.size > 50, `${links.size} links between chapters`);
    const dead = [...links].filter((l) => !anchors.has(decodeURIComponent(l)) && !anchors.has(l));
    check(dead.length === 0, 'links that lead nowhere: ' + dead.join(', '));
    await tab.context.setOffline(false);
    tab.errors = tab.errors.filter((e) => !e.includes('ERR_INTERNET_DISCONNECTED')); // the numbers beside the pages
    await tab.end();
  },

  // Jobs are searched by the error and the event, and what matches is changed as one.
  async 'find jobs by their error'(browser) {
    const tab = await Tab.open(browser, { at: '#/jobs' });
    const { page } = tab;
    await page.getByLabel('Error contains').fill('422');
    await page.getByLabel('Event type').fill('order.rare');
    await tab.press(page.getByRole('button', { name: 'Search' }));
    await page.getByText(/jobs? (was|were) looked at/).waitFor();
    await page.getByRole('row', { name: /sent .*422/ }).waitFor();
    check((await page.locator('tbody tr').count()) === 1, 'other jobs are listed too');
    check(page.url().includes('error=422') && page.url().includes('type=order.rare'), 'the address does not keep the search: ' + page.url());
    await page.getByLabel('Event type').fill('order.unknown');
    await tab.press(page.getByRole('button', { name: 'Search' }));
    await page.getByText('No job matches.').waitFor();
    await tab.end();
  },

  // Who changed what is listed for an admin, and found by who it was and by what was changed.
  async 'the audit says who changed what'(browser) {
    const tab = await Tab.open(browser);
    const { page } = tab;
    await tab.press(page.getByRole('link', { name: 'Audit' }));
    await tab.heading('Audit');
    await api('POST', '/api/holds', { target: 'fine', reason: 'a story <b>of</b> holds' });
    await api('DELETE', '/api/holds?target=fine');
    await page.getByRole('row', { name: /auth_token.* held fine .*reason: a story <b>of<\/b> holds/ }).first().waitFor();
    await page.getByRole('row', { name: /auth_token.* released fine/ }).first().waitFor();
    await page.getByLabel('Action').selectOption('holds.release');
    await tab.press(page.getByRole('button', { name: 'Search' }));
    await until('holds are gone from the list of releases', async () => (await page.getByRole('row', { name: / held / }).count()) === 0);
    await page.getByRole('row', { name: / released fine/ }).first().waitFor();
    await page.getByLabel('Who').fill('nobody');
    await tab.press(page.getByRole('button', { name: 'Search' }));
    await page.getByText('No change was made, or none that fits.').waitFor();
    await tab.end();
  },

  // A page that nobody touches for five minutes reads every half minute, and at once when it is touched.
  async 'a page that nobody touches'(browser) {
    const tab = await Tab.open(browser, { at: '#/jobs' });
    const { page } = tab;
    await page.clock.install();
    await page.reload();
    await tab.heading('Jobs');
    let reads = 0;
    const open = new Set();
    page.on('request', (r) => r.url().includes('/api/jobs?') && (reads++, open.add(r)));
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => open.delete(r));
    // A read ends in real time, and the pause after it is in the time of the page.
    const pass = async (seconds) => {
      reads = 0;
      for (let s = 0; s < seconds; s++) {
        await page.clock.runFor(1000);
        await page.waitForTimeout(20);
        await until('the end of a read', () => open.size === 0);
      }
      return reads;
    };
    const busy = await pass(30);
    check(busy >= 5, `${busy} reads in half a minute, want some`);
    await page.clock.fastForward(300e3);
    await pass(5); // the pause that was begun before
    const idle = await pass(60);
    check(idle >= 1 && idle <= 3, `${idle} reads in a minute without a touch, want 2`);
    reads = 0;
    await page.mouse.move(200, 200);
    await until('a read after a touch', () => reads > 0);
    const again = await pass(30);
    check(again >= 5, `${again} reads in half a minute after a touch, want some`);
    await tab.end();
  },

  // An address that is opened while the page draws itself for the first time is shown.
  async 'a link at once'(browser) {
    const tab = await Tab.open(browser, { at: '#/jobs' });
    await tab.page.addInitScript(() => new MutationObserver((_, o) => {
      if (!document.querySelector('nav[aria-label=Pages]')) return;
      o.disconnect();
      location.hash = '#/queues';
    }).observe(document, { childList: true, subtree: true }));
    await tab.page.reload();
    await tab.heading('Queues');
    await tab.end();
  },

  // Every page, in light, dark and narrow, has no error and no finding. It is the last story: the pages
  // show what the others did.
  async 'every page'(browser) {
    const all = await views();
    for (const [name, how] of Object.entries({ wide: {}, narrow: { width: 390, height: 800 } })) {
      const tab = await Tab.open(browser, how);
      for (const [at, heading] of all) {
        const file = heading.replaceAll(/[ /]/g, '-').toLowerCase();
        await tab.go(at, heading);
        await tab.page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
        if (name === 'wide') await tab.bothSchemes(heading, file);
        else await tab.picture(`${file}-narrow`);
        const wider = await tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        check(wider <= 0, `${heading}, ${name}: the page is ${wider} pixels wider than the window`);
      }
      await tab.end();
    }
  },
};

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];

// arrives opens a view, and returns how many ms it takes from the beginning of the navigation until the
// page has an element. The page itself looks, at each change, so that the driver's time does not count.
async function arrives(page, at) {
  await page.goto('about:blank');
  await page.goto(given.console + at, { waitUntil: 'commit' });
  const found = await page.waitForFunction(() => window.arrived, null, { polling: 20 });
  return found.jsonValue();
}

// watch has each further page note when it has an element for the first time.
const watch = (page, selector) => page.addInitScript((selector) => {
  new MutationObserver((_, me) => {
    if (!document.querySelector(selector)) return;
    window.arrived = performance.now();
    me.disconnect();
  }).observe(document, { childList: true, subtree: true });
}, selector);

// Stories of a new gateway, and of one with many jobs. They are told by name only.
const ofOthers = {
  // A person opens the console of make run and reads nothing else: it says that nothing has come in and how
  // to send something. The event is delivered to one handler; the other one fails, is tried again, and dies,
  // as its page shows without a reload. What was answered is read, and the job is retried with success.
  async 'the first minutes'(browser) {
    const tab = await Tab.open(browser, { role: null, at: given.link.slice(given.console.length) });
    const { page } = tab;
    await tab.heading('Overview');
    await page.getByRole('heading', { name: 'Nothing has come in yet' }).waitFor();
    await tab.all('first-overview');
    await tab.press(page.getByRole('link', { name: 'Events', exact: true }));
    await page.getByText('No event has come in yet.').waitFor();
    await tab.picture('first-events');
    await tab.press(page.getByRole('button', { name: 'Send an event' }));
    await tab.press(page.getByRole('dialog').getByRole('button', { name: 'Send', exact: true }));
    await tab.heading('order.paid');
    await page.getByRole('row', { name: /^echo .*completed/ }).waitFor();
    await page.getByRole('row', { name: /^own .*retryable .*503.*waits for its time/ }).waitFor();
    await page.getByRole('row', { name: /^own .*dead 3 of 3 .*503/ }).waitFor();
    await tab.picture('first-event');
    await tab.press(page.getByRole('link', { name: 'own', exact: true }));
    await tab.heading('own');
    await page.getByText('Attempt 3').waitFor();
    await tab.press(page.getByText('Reply', { exact: true }).first());
    await page.getByText('not yet').first().waitFor();
    await tab.all('first-failure');
    await fetch(given.receiver + '/mend-own');
    await tab.press(page.getByRole('button', { name: 'Retry' }));
    await tab.press(page.getByRole('dialog', { name: 'Retry' }).getByRole('button', { name: 'Retry' }));
    await page.getByText('Attempt 4').waitFor();
    await page.getByText('completed').first().waitFor();
    await tab.press(page.getByRole('link', { name: 'Overview' }));
    await page.getByRole('link', { name: /own .*1 done/ }).waitFor();
    check((await page.getByRole('heading', { name: 'Nothing has come in yet' }).count()) === 0, 'the overview still says that nothing has come in');
    await tab.end();
  },

  // Among many delivered jobs, a failed one is found by its error, and its attempts are read.
  async 'find one failed delivery among many'(browser) {
    const tab = await Tab.open(browser);
    const { page } = tab;
    await watch(page, 'tbody tr');
    const errors = await arrives(page, '#/failures');
    check((await page.locator('tbody tr').count()) === 12, 'the errors are not in groups of one');
    const dead = await arrives(page, '#/jobs?status=dead');
    check((await page.locator('tbody tr').count()) === 12, 'the dead jobs are not twelve');
    await tab.go('#/failures', 'Failures');
    await tab.picture('failures-of-many');
    await page.getByRole('row', { name: /status: 422 .*needle/ }).getByRole('link').click();
    await tab.heading('needle');
    await page.getByText('Attempt 2', { exact: true }).waitFor();
    await page.getByText('Attempt 1', { exact: true }).waitFor();
    await page.getByText('Reply', { exact: true }).first().click();
    await page.getByText('answer 422: the currency is not known').first().waitFor();
    await tab.picture('one-failure-of-many');
    check(errors < 5000 && dead < 5000, `errors after ${errors} ms, dead jobs after ${dead} ms`);
    await tab.end();
    return { figures: `errors after ${Math.round(errors)} ms, dead jobs after ${Math.round(dead)} ms` };
  },

  // The overview has data soon after it is opened in a browser that is signed in. A machine under load
  // is slower than the 300 ms that are the aim on an idle one.
  async 'the first page is fast'(browser) {
    const tab = await Tab.open(browser);
    await tab.heading('Overview');
    await watch(tab.page, '.cards .number');
    const again = [], anew = [];
    for (let i = 0; i < 5; i++) again.push(await arrives(tab.page, '#/'));
    const cookies = await tab.context.cookies(given.console);
    await tab.end();
    for (let i = 0; i < 3; i++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
      await context.addCookies(cookies);
      const page = await context.newPage();
      await watch(page, '.cards .number');
      anew.push(await arrives(page, '#/'));
      await context.close();
    }
    check(median(again) < 3000 && median(anew) < 3000, `${again}; with an empty cache ${anew}`);
    return { figures: `median ${Math.round(median(again))} ms, with an empty cache ${Math.round(median(anew))} ms (all: ${[...again, ...anew].map(Math.round)})` };
  },

  // A page asks for at most two things when it is opened, beside the statistics that the frame reads every
  // five seconds for all pages.
  async 'at most two calls a page'(browser) {
    const tab = await Tab.open(browser, { at: '#/nothing' });
    const { page } = tab;
    let asked = new Set(), open = 0, begun = 0;
    const callOf = (r) => {
      const { pathname, search } = new URL(r.url());
      const call = pathname.slice(new URL(given.console).pathname.length + 1) + search;
      return call.startsWith('api/') && call !== 'api/stats' && call;
    };
    page.on('request', (r) => callOf(r) && (open++, begun++, asked.add(callOf(r))));
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => callOf(r) && open--);
    const all = new Set(['api/stats']);
    const paths = await page.evaluate(() => [...document.querySelectorAll('nav[aria-label=Pages] a')].map((a) => a.getAttribute('href')));
    const { job, event, run } = await some('needle');
    // An answer brings elements, and these may ask for more once they are drawn: in the second frame after it.
    const calm = async (at) => {
      for (let before = -1; before !== begun || open > 0;) {
        await until(`the calls of ${at}`, () => open === 0);
        before = begun;
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
      }
    };
    for (const at of [...paths, '#/jobs?status=dead', `#/jobs/${job}`, `#/events/${event}`, '#/queues/mail', `#/runs/${run}`, `#/runs/${run}?step=reserve`, '#/events?source=shop', '#/jobs?handler=bulk', '#/']) {
      asked = new Set();
      await tab.page.goto(given.console + at);
      await page.getByRole('heading', { level: 1 }).waitFor();
      // On a busy machine the page before it may be shown for a while.
      await until(`the calls of ${at}`, () => open === 0 && (asked.size > 0 || at === '#/manual')); // the manual is no part of the API
      await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
      await calm(at);
      // A page that is closed asks nothing any more, so no call counts for the page after it.
      await tab.go('#/nothing', 'Not found');
      await calm('#/nothing');
      check(asked.size <= 2, `${at} asks for ${[...asked].join(', ')}`);
      for (const call of asked) all.add(call);
    }
    await tab.end();
    return { calls: [...all] };
  },
};

const browser = await chromium.launch({ executablePath: given.browser, args: ['--no-sandbox'] });
for (const [story, tell] of Object.entries(given.stories ? { ...stories, ...ofOthers } : stories)) {
  if (given.stories && !given.stories.includes(story)) continue;
  const began = Date.now();
  let problem = null, measured;
  try {
    measured = await tell(browser);
  } catch (error) {
    problem = error instanceof Problem ? error.message : String(error.stack || error);
    for (const c of browser.contexts()) await c.close();
  }
  console.log(JSON.stringify({ story, problem, ms: Date.now() - began, ...measured }));
}
await browser.close();
