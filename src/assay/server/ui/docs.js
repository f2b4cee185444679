// Shows the document with Swagger UI. Credentials stay in the page, and end with it.

const show = async () => {
  const answer = await fetch("openapi.json", { credentials: "omit" });
  if (!answer.ok) throw new Error(`openapi.json was answered with ${answer.status}`);
  const spec = await answer.json();
  // Calls go to the origin of this page, under whichever name it was opened: the policy of the page
  // lets nothing else through.
  spec.servers = [{ url: new URL(".", location.href).href.replace(/\/$/, "") }];
  SwaggerUIBundle({
    spec,
    dom_id: "#reference",
    layout: "BaseLayout",
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

show().catch((error) => {
  document.querySelector("#reference").textContent = `The reference cannot be shown: ${error.message}`;
});
