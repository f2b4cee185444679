// Opens /docs at one width, makes calls with "Try it out", and prints what happened as JSON.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const asked = JSON.parse(process.argv[2]);
const PATIENCE_MS = 20_000;
const require = createRequire(import.meta.url);
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const origin = new URL(asked.url).origin;

const browser = await chromium.launch({ executablePath: asked.chromium, env: asked.environment, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: asked.width, height: 900 } });
context.setDefaultTimeout(PATIENCE_MS);
const page = await context.newPage();
const found = { console: [], foreign: [], requests: [] };
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) found.console.push(message.text()); });
page.on("pageerror", (error) => found.console.push(String(error)));
page.on("request", (request) => {
  found.requests.push(`${request.method()} ${new URL(request.url()).pathname}`);
  if (new URL(request.url()).origin !== origin && !request.url().startsWith("data:")) found.foreign.push(request.url());
});

// Which elements reach beyond the window.
const overflow = () => page.evaluate(() =>
  document.scrollingElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => `${one.tagName}.${one.className} ${one.getBoundingClientRect().right}`).slice(0, 20));

const check = async () => {
  await context.newCDPSession(page).then((session) => session.send("Page.setBypassCSP", { enabled: true }));
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run());
  return result.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id} ${node.target.join(" ")} ${node.any.map((one) => one.message).join(" ")}`));
};

const opened = async (id) => {
  const block = page.locator(`.opblock[id$="-${id}"]`);
  await block.locator(".opblock-summary-control").click();
  await block.locator(".try-out__btn").click();
  return block;
};

const sent = async (block) => {
  await block.locator("button.execute").click();
  const answer = block.locator(".live-responses-table tr.response").first();
  await answer.waitFor();
  return {
    status: Number((await answer.locator(".response-col_status").innerText()).slice(0, 3)),
    body: await answer.locator(".response-col_description").innerText(),
  };
};

await page.goto(asked.url);
await page.locator(".opblock-tag-section").first().waitFor();
const closed = page.locator(".opblock-tag-section:not(.is-open) > .opblock-tag");
while (await closed.count() > 0) await closed.first().click();
found.overflow = await overflow();
if (asked.picture) await page.screenshot({ path: `${asked.picture}-list.png` });

const health = await opened("health");
found.health = await sent(health);

await page.locator(".auth-wrapper button.authorize").first().click();
const dialog = page.locator(".dialog-ux");
for (const [name, value] of Object.entries(asked.credentials)) {
  const scheme = dialog.locator(".auth-container").filter({ has: page.locator("h4 code", { hasText: name }) });
  await scheme.locator("input").fill(value);
  await scheme.locator("button.authorize").click();
}
if (asked.picture) await page.screenshot({ path: `${asked.picture}-auth.png` });
found.axeDialog = asked.axe ? await check() : [];
await dialog.locator(".close-modal").click();

const gate = await opened("gate");
await gate.locator('tr[data-param-name="agentId"] input').fill(asked.agent);
await gate.locator("textarea.body-param__text").fill(asked.body);
found.gate = await sent(gate);
found.overflow.push(...await overflow());
if (asked.picture) await gate.screenshot({ path: `${asked.picture}-gate.png` });
found.stored = await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length);
found.axe = asked.axe ? await check() : [];
await browser.close();
process.stdout.write(JSON.stringify(found) + "\n");
