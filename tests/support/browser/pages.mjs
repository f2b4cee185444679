// Opens each page at each width, light and dark, and prints what went wrong as JSON.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const asked = JSON.parse(process.argv[2]);
const require = createRequire(import.meta.url);
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const origin = new URL(asked.address).origin;
const browser = await chromium.launch({ executablePath: asked.chromium, env: asked.environment, args: ["--no-sandbox"] });
const found = { console: [], foreign: [], overflow: [], scripts: [], axe: [], cookies: 0, opened: 0, titles: {} };

// Which elements reach beyond the window.
const overflow = (page) => page.evaluate(() =>
  document.scrollingElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => `${one.tagName}.${one.getAttribute("class")}`).slice(0, 10));

const serious = async (page) => {
  await page.context().newCDPSession(page).then((session) => session.send("Page.setBypassCSP", { enabled: true }));
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run());
  return result.violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id} ${node.target.join(" ")} ${node.any.map((one) => one.message).join(" ")}`));
};

for (const colorScheme of asked.schemes) {
  const context = await browser.newContext({ colorScheme });
  const page = await context.newPage();
  let at = "";
  page.on("console", (message) => { if (["error", "warning"].includes(message.type()) && !message.text().includes("status of 404")) found.console.push(`${at} ${message.text()}`); });
  page.on("pageerror", (error) => found.console.push(`${at} ${error}`));
  page.on("dialog", (dialog) => { found.scripts.push(`${at} ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin && !request.url().startsWith("data:")) found.foreign.push(request.url());
  });
  for (const width of asked.widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const path of asked.paths) {
      at = `${path} ${width} ${colorScheme}`;
      const answer = await page.goto(`${asked.address}${path}`);
      found.opened += 1;
      found.titles[path] = await page.title();
      // Everything folded is opened, so that it has to fit as well.
      if (asked.unfold) await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
      for (const one of await overflow(page)) found.overflow.push(`${at} ${one}`);
      if (await page.evaluate(() => document.scripts.length)) found.scripts.push(`${at} has a script`);
      if (answer.headers()["set-cookie"]) found.cookies += 1;
      if (asked.pictures) await page.screenshot({ path: `${asked.pictures}/${at.replaceAll(/[^a-z0-9]+/g, "-")}.png`, fullPage: asked.fullPage ?? true });
      if (asked.axe && width === asked.widths.at(-1)) found.axe.push(...(await serious(page)).map((one) => `${at} ${one}`));
    }
  }
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found) + "\n");
