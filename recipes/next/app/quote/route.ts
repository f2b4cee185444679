// A route that asks Assay itself, and needs no proxy.ts.
import { Assay } from "@assay/client";
import { protectRoute } from "@assay/client/next";

const apiKey = process.env.ASSAY_KEY;
if (!apiKey) throw new Error("Set ASSAY_KEY to your API key.");
const assay = new Assay(process.env.ASSAY_URL ?? "http://127.0.0.1:8787", { apiKey });

export const GET = protectRoute(assay, { minScore: 65 }, (request, decision) =>
  Response.json({ price: "1.00", tier: decision?.tier }),
);
