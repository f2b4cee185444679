// Prints the Bruno collection of the OpenAPI document whose path is given.
import { readFileSync } from "node:fs";
import { openApiToBruno } from "@usebruno/converters";

process.stdout.write(JSON.stringify(openApiToBruno(JSON.parse(readFileSync(process.argv[2], "utf8")))));
