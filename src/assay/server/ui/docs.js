// Shows the document with Swagger UI. Credentials stay in the page, and end with it.

// An operation is a button. A link inside a button cannot be reached by a screen reader.
const withoutInnerLinks = ({ React }) => ({
  components: { DeepLink: ({ text }) => React.createElement("span", {}, text) },
});

// What Swagger UI leaves out for screen readers and keyboards: selector, attribute, value.
const ATTRIBUTES = [
  ["textarea:not([aria-label])", "aria-label", "Request body"],
  [".close-modal:not([aria-label])", "aria-label", "Close"],
  [".highlight-code .microlight:not([tabindex])", "tabindex", "0"],
  [".operation-filter-input:not([aria-label])", "aria-label", "Filter by tag"],
];

const complete = (root) => {
  for (const [selector, name, value] of ATTRIBUTES)
    for (const element of root.querySelectorAll(selector)) element.setAttribute(name, value);
  for (const button of root.querySelectorAll(".auth-btn-wrapper [aria-label]")) button.removeAttribute("aria-label");
};

const show = async (root) => {
  const answer = await fetch("openapi.json", { credentials: "omit" });
  if (!answer.ok) throw new Error(`openapi.json was answered with ${answer.status}`);
  const spec = await answer.json();
  // Calls go to the origin of this page, under whichever name it was opened: the page's policy
  // permits no other.
  spec.servers = [{ url: new URL(".", location.href).href.replace(/\/$/, "") }];
  new MutationObserver(() => complete(root)).observe(root, { childList: true, subtree: true });
  SwaggerUIBundle({
    spec,
    domNode: root,
    layout: "BaseLayout",
    plugins: [withoutInnerLinks],
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    persistAuthorization: false,
    queryConfigEnabled: false,
    validatorUrl: null,
    withCredentials: false,
  });
};

const root = document.querySelector("#reference");
show(root).catch((error) => {
  root.textContent = `The reference cannot be shown: ${error.message}`;
});
