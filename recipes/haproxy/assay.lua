-- Asks Assay whether a request may pass: `http-request lua.assay POLICY`.
--
-- On allow it sets txn.assay_allowed, adds the X-Assay-* headers, and keeps a new session in
-- txn.assay_session. Everything else ends the request with Assay's own answer, or with 503 if
-- Assay does not answer.

local ADDRESS = os.getenv("ASSAY_ADDRESS") or "http://127.0.0.1:8787"
local KEY = os.getenv("ASSAY_KEY")
local TIMEOUT_MS = 15000

local CALLERS = {
  "x-agent-id", "x-agent-address", "x-agent-session", "x-agent-challenge", "x-agent-signature",
  "x-chain", "x-min-score", "x-request-id", "signature-agent", "signature-input", "signature",
}
local DECISION = {
  "x-assay-agent", "x-assay-tier", "x-assay-score", "x-assay-route", "x-assay-identity-proven",
  "x-assay-decision-token",
}
local REFUSAL = {
  "content-type", "retry-after", "x-agent-challenge", "x-agent-session", "x-assay-error",
  "x-request-id",
}

local function first(headers, name)
  local values = headers and headers[name]
  return values and values[0]
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for name, value in pairs(headers) do
    reply:add_header(name, value)
  end
  reply:set_body(body)
  txn:done(reply)
end

local function assay(txn, policy)
  local sent, given = { ["authorization"] = { "Bearer " .. (KEY or "") } }, txn.http:req_get_headers()
  for _, name in ipairs(CALLERS) do
    local value = first(given, name)
    if value then
      sent[name] = { value }
    end
  end
  local answer = core.httpclient():get({
    url = ADDRESS .. "/gate/check/" .. policy, headers = sent, timeout = TIMEOUT_MS,
  })
  local status = answer and answer.status or 0
  if status == 200 then
    for _, name in ipairs(DECISION) do
      txn.http:req_set_header(name, first(answer.headers, name) or "")
    end
    local session = first(answer.headers, "x-agent-session")
    if session then
      txn:set_var("txn.assay_session", session)
    end
    txn:set_var("txn.assay_allowed", true)
    return
  end
  local headers = {}
  for _, name in ipairs(REFUSAL) do
    headers[name] = first(answer and answer.headers, name)
  end
  if status == 401 or status == 403 or status == 429 or status == 503 then
    refuse(txn, status, headers, answer.body or "")
  else
    refuse(txn, 503, { ["content-type"] = "application/json", ["retry-after"] = "5" },
      '{"error":"gate_unavailable","message":"The trust gate does not answer."}')
  end
end

core.register_action("assay", { "http-req" }, assay, 1)
