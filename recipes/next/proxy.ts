// Next asks Assay before it lets an agent reach a page or a route: npm install next @assay/client
// Before Next 16, this file is middleware.ts and the function is called middleware.
import { Assay } from "@assay/client";
import { gateProxy } from "@assay/client/next";

const apiKey = process.env.ASSAY_KEY;
if (!apiKey) throw new Error("Set ASSAY_KEY to your API key.");
const assay = new Assay(process.env.ASSAY_URL ?? "http://127.0.0.1:8787", { apiKey });

export const proxy = gateProxy(assay, { minScore: 65, openPaths: ["/health"] });
