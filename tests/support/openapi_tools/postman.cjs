// Prints the Postman collection of the OpenAPI document whose path is given.
const { readFileSync } = require("node:fs");
const { convertV2 } = require("openapi-to-postmanv2");

convertV2({ type: "string", data: readFileSync(process.argv[2], "utf8") }, {}, (error, found) => {
  if (error || !found.result) throw error ?? new Error(found.reason);
  process.stdout.write(JSON.stringify(found.output[0].data));
});
