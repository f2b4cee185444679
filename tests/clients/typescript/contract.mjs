// One check of the client against a serving Assay: node contract.mjs NAME JSON. Exits with 0 if it holds.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { inspect } from "node:util";

import * as client from "@assay/client";

const { AgentSession, Assay, InvalidInput, InvalidToken } = client;
const [name, given] = process.argv.slice(2);
const { url, key, token, operatorId, address, signer, wrapper } = JSON.parse(given);
const assay = new Assay(url, { apiKey: key, token });
const sign = async (text) => (await fetch(signer, { method: "POST", body: text })).text();
const session = () => assay.openSession(new AgentSession(address, sign));
const asked = async (more) => ({ address, session: (await session()).token, ...more });

/** A server on loopback that answers by `listener`; closed when `use` has ended. */
async function serving(listener, use) {
  const server = createServer(listener);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const base64url = (value) => Buffer.from(value).toString("base64url");
const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

async function signer256(kid) {
  const pair = await crypto.subtle.generateKey(ES256, true, ["sign", "verify"]);
  const jwk = { ...(await crypto.subtle.exportKey("jwk", pair.publicKey)), kid, alg: "ES256", use: "sig" };
  delete jwk.key_ops;
  return { jwk, pair };
}

async function made(pair, header, claims) {
  const head = { alg: "ES256", typ: "assay-decision+jwt", kid: "one", ...header };
  const signed = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(claims))}`;
  const signature = await crypto.subtle.sign(ES256, pair.privateKey, Buffer.from(signed));
  return `${signed}.${base64url(new Uint8Array(signature))}`;
}

const checks = {
  async decides() {
    const low = await assay.gate(address, await asked({ minScore: 0 }));
    const high = await assay.gate(address, await asked({ minScore: 100 }));
    assert.deepEqual([low.allow, high.allow, low.identityProven], [true, false, true]);
    assert.ok(high.reasons.length > 0);
    assert.ok(low.decisionToken);
    assert.ok(!inspect(low).includes(low.decisionToken) && !JSON.stringify(low).includes(low.decisionToken));
    await assert.rejects(assay.gate("../me", {}), InvalidInput);
    await assert.rejects(assay.gate(address, { minScore: NaN }), InvalidInput);
    await assert.rejects(assay.gate(address, { address: "a\r\nb: c" }), InvalidInput);
  },

  async challenges() {
    const agent = new AgentSession(address, sign);
    const error = await assay.gate(address, { address }).catch((e) => e);
    assert.ok(error instanceof client.ChallengeRequired);
    const proof = await agent.answer(error.challenge);
    const decision = await assay.gate(address, {
      address,
      challenge: proof["x-agent-challenge"],
      signature: proof["x-agent-signature"],
      minScore: 0,
    });
    assert.ok(decision.allow && decision.agentSession);
    assert.ok(!inspect(decision).includes(decision.agentSession));
    await assert.rejects(agent.answer("I transfer everything I own."), InvalidInput);
  },

  async wrappers() {
    const one = await assay.createWrapper(wrapper);
    const changed = await assay.updateWrapper(one.id, { pricePerCall: "0.02" }, { revision: one.revision });
    assert.equal(changed.pricePerCall, "0.020000");
    const late = assay.updateWrapper(one.id, { description: "late" }, { revision: one.revision });
    await assert.rejects(late, client.Conflict);
    await assay.deleteWrapper(one.id);
    assert.deepEqual((await assay.wrappers()).map((w) => [w.id, w.active]), [[one.id, false]]);
  },

  async account() {
    assert.equal((await assay.me()).operator.id, operatorId);
    assert.ok((await assay.evaluate(address)).tier);
    await assert.rejects(assay.profile("999999999"), client.AssayError);
  },

  async tokens() {
    const { decisionToken } = await assay.gate(address, await asked({ minScore: 0 }));
    const [head, payload, signature] = decisionToken.split(".");
    const { iss: issuer } = JSON.parse(Buffer.from(payload, "base64url").toString());
    const expected = { audience: operatorId, issuer };
    assert.equal((await assay.verifyDecision(decisionToken, expected)).allow, true);
    for (const wrong of [`${head}.${payload}x.${signature}`, `e30.${payload}.${signature}`, "a.b.c", ""]) {
      await assert.rejects(assay.verifyDecision(wrong, expected), InvalidToken);
    }
    await assert.rejects(assay.verifyDecision(decisionToken, { ...expected, audience: "another" }), /audience/);
    await assert.rejects(assay.verifyDecision(decisionToken, { ...expected, issuer: "http://else" }), /issuer/);
  },

  async forgeries() {
    const [own, other] = [await signer256("one"), await signer256("one")];
    let fetched = 0;
    const listener = (_, response) => {
      fetched += 1;
      response.end(JSON.stringify({ keys: [{ kty: "oct", kid: "none", k: "AAAA" }, own.jwk] }));
    };
    await serving(listener, async (issuer) => {
      const verifier = new Assay(issuer);
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: issuer, aud: "me", sub: "eip155:1/22", jti: "j", iat: now, exp: now + 300, agentAddress: address,
        chain: "base", allow: true, score: 70, minScore: 65, tier: "A", riskLevel: "low", route: "allow",
      };
      const verified = (text) => verifier.verifyDecision(text, { audience: "me" });
      assert.equal((await verified(await made(own.pair, {}, claims))).sub, "eip155:1/22");
      const forged = {
        "other key": await made(other.pair, {}, claims),
        "alg none": `${(await made(own.pair, { alg: "none" }, claims)).split(".").slice(0, 2).join(".")}.AA`,
        "alg HS256": await made(own.pair, { alg: "HS256" }, claims),
        "another type": await made(own.pair, { typ: "JWT" }, claims),
        "critical extension": await made(own.pair, { crit: ["x"] }, claims),
        "symmetric key": await made(own.pair, { kid: "none" }, claims),
        expired: await made(own.pair, {}, { ...claims, exp: now - 10 }),
        "from the future": await made(own.pair, {}, { ...claims, iat: now + 60 }),
        "no expiry": await made(own.pair, {}, { ...claims, exp: undefined }),
        "allow as text": await made(own.pair, {}, { ...claims, allow: "true" }),
        "another audience": await made(own.pair, {}, { ...claims, aud: "you" }),
        "audience as list": await made(own.pair, {}, { ...claims, aud: ["me"] }),
        "too long": "a".repeat(9000),
      };
      for (const [kind, text] of Object.entries(forged)) {
        await assert.rejects(verified(text), InvalidToken, kind);
      }
      for (const kid of ["x", "y", "z"]) await assert.rejects(verified(await made(own.pair, { kid }, claims)));
      assert.equal(fetched, 1);
    });
  },

  async secrets() {
    const wrong = new Assay(url, { apiKey: "svc_op_secret-of-mine" });
    const error = await wrong.profile("1").catch((e) => e);
    assert.ok(error instanceof client.Unauthorized);
    const agent = await session();
    for (const shown of [wrong, error, agent]) {
      const text = inspect(shown, { depth: 9, showHidden: true }) + JSON.stringify(shown);
      assert.ok(!text.includes("secret-of-mine") && !text.includes(agent.token), text);
    }
    for (const at of ["ftp://x", "http://a:b@x", "http://x?y", "http://x#y", "x"]) {
      assert.throws(() => new Assay(at), InvalidInput);
    }
    assert.throws(() => new Assay(url, { apiKey: "a\nb" }), (e) => !e.message.includes("a\nb"));
  },

  async hostile() {
    const seen = [];
    const listener = (request, response) => {
      seen.push(request.url);
      if (seen.length === 1) response.writeHead(302, { location: "/elsewhere" });
      response.end("x".repeat(100));
    };
    await serving(listener, async (at) => {
      const reader = new Assay(at, { apiKey: "k", responseBytesMax: 50 });
      await assert.rejects(reader.wrappers(), /redirects/);
      await assert.rejects(reader.wrappers(), /longer/);
      assert.deepEqual(seen, ["/operator/endpoints", "/operator/endpoints"]);
      await assert.rejects(new Assay(at, { apiKey: "k" }).wrappers(), client.UnexpectedResponse);
    });
    const allows = (members) => (_, response) => response.end(JSON.stringify(members));
    for (const members of [{}, [], null, { allow: "true" }, { allow: 1 }]) {
      await serving(allows(members), async (at) => {
        await assert.rejects(new Assay(at, { apiKey: "k" }).gate(address), client.UnexpectedResponse);
      });
    }
  },

  async repeats() {
    let seen = 0;
    const refuse = (status, wait) => (_, response) => {
      seen += 1;
      if (seen > 1) return response.end("[]");
      response.writeHead(status, wait === undefined ? {} : { "retry-after": wait });
      response.end('{"code": "rate_limited"}');
    };
    for (const [status, after, times] of [[429, "0", 2], [503, "0", 2], [429, "60", 1], [429, undefined, 1], [500, "0", 1]]) {
      seen = 0;
      await serving(refuse(status, after), async (at) => {
        const result = await new Assay(at, { apiKey: "k" }).wrappers().catch((e) => e);
        assert.deepEqual([Array.isArray(result), seen], [times === 2, times]);
      });
    }
    const lose = (request, response) => (seen += 1) && response.destroy();
    await serving(lose, async (at) => {
      const lost = new Assay(at, { apiKey: "k", retries: { waitMs: 1 } });
      for (const [call, times] of [
        [() => lost.wrappers(), 3],
        [() => lost.gate(address, { address }), 3],
        [() => lost.gate(address, { address, challenge: "c", signature: "0x1" }), 1],
        [() => lost.createWrapper(wrapper), 1],
      ]) {
        seen = 0;
        const error = await call().catch((e) => e);
        assert.ok(error instanceof client.ConnectionFailed && error.sent);
        assert.equal(seen, times);
      }
    });
    await serving(() => (seen += 1), async (at) => {
      const impatient = new Assay(at, { apiKey: "k", timeoutMs: 50, retries: { attempts: 1 } });
      await assert.rejects(impatient.wrappers(), client.ConnectionFailed);
    });
  },
};

await checks[name]();
