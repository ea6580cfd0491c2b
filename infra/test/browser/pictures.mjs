// Pictures of the operator console, for README. The first argument is a JSON text:
//
//   {"browser": "/usr/bin/...", "console": "http://.../console", "at": "#/...", "token": "...",
//    "now": "2026-...Z", "folder": "..."}
//
// now is what the clock of the browser shows. The folder gets light.png and dark.png. Printed is one line
// of JSON, {"light": "...", "dark": "..."}: what a screen reader finds on the page.
import { chromium } from 'playwright-core';

const given = JSON.parse(process.argv[2]);
const browser = await chromium.launch({ executablePath: given.browser, args: ['--no-sandbox'] });
const seen = {}, errors = [];
for (const colorScheme of ['light', 'dark']) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1200, height: 800 }, reducedMotion: 'reduce', locale: 'en', timezoneId: 'UTC' });
  const page = await context.newPage();
  page.on('console', (m) => m.type() === 'error' && !m.text().includes('status of 401') && errors.push(m.text())); // before the sign-in
  page.on('pageerror', (e) => errors.push(String(e.stack || e)));
  page.setDefaultTimeout(15000);
  await page.clock.setFixedTime(new Date(given.now));
  await page.goto(given.console + given.at);
  await page.getByLabel('Token').fill(given.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('group', { name: 'Sources and their consumers' }).waitFor();
  await page.getByRole('img').first().waitFor();
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  // The picture ends below the sources and consumers; the table is left out.
  const end = await page.locator('.picture').evaluate((e) => Math.ceil(e.getBoundingClientRect().bottom) + 14);
  await page.setViewportSize({ width: 1200, height: end });
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: `${given.folder}/${colorScheme}.png`, animations: 'disabled' });
  seen[colorScheme] = await page.locator('body').ariaSnapshot();
  await context.close();
}
await browser.close();
if (errors.length) throw new Error('the browser reports: ' + errors.join('; '));
console.log(JSON.stringify(seen));
