// Draws the reference from /openapi.json. Everything becomes text nodes: nothing is parsed as HTML.

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
};

const referred = (api, node) =>
  node?.$ref ? node.$ref.slice(2).split("/").reduce((found, step) => found[step], api) : node;

const resolve = (api, schema) => {
  const name = schema?.$ref?.split("/").pop();
  return name ? { name, ...api.components.schemas[name] } : (schema ?? {});
};

const typeName = (api, schema) => {
  const known = resolve(api, schema);
  if (known.anyOf) return known.anyOf.map((one) => typeName(api, one)).join(" or ");
  if (known.type === "array") return `list of ${typeName(api, known.items)}`;
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(" | ");
  return known.name ?? known.format ?? known.type ?? "anything";
};

const bounds = (schema) =>
  ["minimum", "maximum", "exclusiveMinimum", "maxLength", "pattern", "default"]
    .filter((name) => schema[name] !== undefined)
    .map((name) => `${name} ${JSON.stringify(schema[name])}`)
    .join(", ");

const members = (api, schema, depth = 0) => {
  const known = resolve(api, schema);
  const inner = known.type === "array" ? resolve(api, known.items) : known;
  if (!inner.properties) return null;
  const rows = Object.entries(inner.properties).map(([name, member]) => {
    const nested = depth < 2 ? members(api, member.anyOf?.[0] ?? member, depth + 1) : null;
    const said = [member.description, bounds(member)].filter(Boolean).join(" · ");
    return make("tr", {},
      make("td", {}, make("code", {}, name), inner.required?.includes(name) ? null : make("i", {}, " optional")),
      make("td", {}, typeName(api, member)),
      make("td", {}, said, nested));
  });
  return make("table", {}, make("tbody", {}, ...rows));
};

const credentials = (operation) => {
  const needed = (operation.security ?? []).map((one) => Object.keys(one).join(" and ") || "nothing");
  return make("p", { class: "needs" }, needed.length ? `Needs: ${needed.join(", or ")}` : "Open to everybody");
};

const draw = (api, path, method, operation) => {
  const ok = operation.responses["200"]?.content?.["application/json"]?.schema;
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  const refusals = Object.keys(operation.responses).filter((status) => status !== "200");
  const parameters = (operation.parameters ?? []).map((one) => referred(api, one)).map((one) =>
    make("li", {}, make("code", {}, one.name), ` in ${one.in}`, one.required ? "" : ", optional",
      one.description ? `: ${one.description}` : ""));
  return make("section", { id: operation.operationId },
    make("h2", {}, make("b", { class: method }, method.toUpperCase()), " ", make("code", {}, path)),
    make("p", {}, operation.description ?? operation.summary ?? ""),
    credentials(operation),
    parameters.length ? make("ul", {}, ...parameters) : null,
    body ? make("h3", {}, "Body") : null, body ? members(api, body) : null,
    make("h3", {}, "Answer 200"), ok ? members(api, ok) ?? make("p", {}, typeName(api, ok)) : null,
    make("p", { class: "refusals" }, `Refusals: ${refusals.join(", ")}`));
};

const show = (api) => {
  document.querySelector("#about").textContent =
    `${api.info.summary} Version ${api.info.version}. ${api.info.description}`;
  const drawn = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation,
      element: draw(api, path, method, operation) })));
  document.querySelector("#operations").append(...drawn.map((one) => one.element));
  document.querySelector("#contents").append(...drawn.map(({ path, method, operation }) =>
    make("a", { href: `#${operation.operationId}` }, make("b", { class: method }, method.toUpperCase()), ` ${path}`)));
  document.querySelector("#filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const { element } of drawn) element.hidden = !element.textContent.toLowerCase().includes(wanted);
  });
};

const answer = await fetch("/openapi.json");
show(await answer.json());
