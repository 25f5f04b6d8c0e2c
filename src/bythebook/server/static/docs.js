// Show the OpenAPI document with Swagger UI. The key stays in this page.
SwaggerUIBundle({
  url: `${document.body.dataset.root}openapi.json`,
  dom_id: "#api",
  deepLinking: true, // each operation has an address
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null, // nothing is sent to other sites
});
