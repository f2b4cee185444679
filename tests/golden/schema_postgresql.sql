CREATE TABLE account_codes (
    code_hash character varying(64) NOT NULL,
    kind character varying(16) NOT NULL,
    operator_id character varying(36),
    email_lower text,
    created_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    spent_us bigint,
    asked_by character varying(16) DEFAULT 'terminal'::character varying NOT NULL,
    origin character varying(64),
    mailbox character varying(64),
    CONSTRAINT account_codes_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT account_codes_pkey PRIMARY KEY (code_hash)
);
CREATE INDEX ix_account_codes_expires ON public.account_codes USING btree (expires_us);
CREATE INDEX ix_account_codes_mailbox ON public.account_codes USING btree (mailbox);
CREATE INDEX ix_account_codes_operator ON public.account_codes USING btree (operator_id, kind);
CREATE INDEX ix_account_codes_origin ON public.account_codes USING btree (origin);

CREATE TABLE agent_chains (
    operator_id character varying(36) NOT NULL,
    agent_id character varying(80) NOT NULL,
    chain character varying(64) NOT NULL,
    CONSTRAINT agent_chains_pkey PRIMARY KEY (operator_id, agent_id, chain)
);

CREATE TABLE agent_days (
    operator_id character varying(36) NOT NULL,
    agent_id character varying(80) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    day integer NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    CONSTRAINT agent_days_pkey PRIMARY KEY (operator_id, agent_id, wrapper_id, day)
);

CREATE TABLE agent_identities (
    subject_key character varying(160) NOT NULL,
    owner character varying(64) NOT NULL,
    owner_us bigint,
    group_key character varying(32),
    skeleton character varying(200) NOT NULL,
    signature text NOT NULL,
    rung integer NOT NULL,
    first_us bigint NOT NULL,
    seen_us bigint NOT NULL,
    CONSTRAINT agent_identities_pkey PRIMARY KEY (subject_key)
);
CREATE INDEX ix_agent_identities_group ON public.agent_identities USING btree (group_key);
CREATE INDEX ix_agent_identities_seen ON public.agent_identities USING btree (seen_us);
CREATE INDEX ix_agent_identities_skeleton ON public.agent_identities USING btree (skeleton, rung, first_us);

CREATE TABLE agent_totals (
    operator_id character varying(36) NOT NULL,
    agent_id character varying(80) NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    tier character varying(3),
    tier_us bigint,
    CONSTRAINT agent_totals_pkey PRIMARY KEY (operator_id, agent_id)
);
CREATE INDEX ix_agent_totals_calls ON public.agent_totals USING btree (operator_id, calls, agent_id);
CREATE INDEX ix_agent_totals_errors ON public.agent_totals USING btree (operator_id, errors, agent_id);
CREATE INDEX ix_agent_totals_last_us ON public.agent_totals USING btree (operator_id, last_us, agent_id);
CREATE INDEX ix_agent_totals_revenue ON public.agent_totals USING btree (operator_id, revenue, agent_id);

CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE allowance (
    operator_id character varying(36) NOT NULL,
    month character varying(7) NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT allowance_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT allowance_pkey PRIMARY KEY (operator_id, month)
);

CREATE TABLE api_keys (
    id character varying(36) NOT NULL,
    operator_id character varying(36) NOT NULL,
    key_hash character varying(64) NOT NULL,
    prefix character varying(32) NOT NULL,
    label text,
    revoked boolean NOT NULL,
    last_used_us bigint,
    created_us bigint NOT NULL,
    scopes text DEFAULT 'evaluate gate proxy webhooks'::text NOT NULL,
    expires_us bigint,
    gate_policies text DEFAULT ''::text NOT NULL,
    CONSTRAINT api_keys_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash)
);
CREATE INDEX ix_api_keys_operator ON public.api_keys USING btree (operator_id, created_us);

CREATE TABLE attested_people (
    trait character varying(64) NOT NULL,
    address character varying(64) NOT NULL,
    seen_day integer NOT NULL,
    CONSTRAINT attested_people_pkey PRIMARY KEY (trait)
);
CREATE INDEX ix_attested_people_seen ON public.attested_people USING btree (seen_day);

CREATE TABLE audit (
    seq bigint DEFAULT nextval('audit_seq_seq'::regclass) NOT NULL,
    id character varying(36) NOT NULL,
    at_us bigint NOT NULL,
    actor_kind character varying(16) NOT NULL,
    actor_id character varying(36),
    client character varying(64) NOT NULL,
    request_id character varying(64) NOT NULL,
    action character varying(32) NOT NULL,
    operator_id character varying(36) NOT NULL,
    target character varying(64) NOT NULL,
    details text NOT NULL,
    CONSTRAINT audit_pkey PRIMARY KEY (seq),
    CONSTRAINT audit_id_key UNIQUE (id)
);
CREATE INDEX ix_audit_actor ON public.audit USING btree (actor_id);
CREATE INDEX ix_audit_failed_logins ON public.audit USING btree (at_us) WHERE ((action)::text = 'login.failed'::text);
CREATE INDEX ix_audit_operator ON public.audit USING btree (operator_id, seq);

CREATE TABLE call_days (
    operator_id character varying(36) NOT NULL,
    day integer NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    asked bigint NOT NULL,
    paid bigint NOT NULL,
    denied bigint NOT NULL,
    limited bigint NOT NULL,
    settled bigint NOT NULL,
    failed bigint NOT NULL,
    CONSTRAINT call_days_pkey PRIMARY KEY (operator_id, day)
);

CREATE TABLE call_id_key (
    key bytea NOT NULL
);

CREATE TABLE call_totals (
    operator_id character varying(36) NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    asked bigint NOT NULL,
    paid bigint NOT NULL,
    denied bigint NOT NULL,
    limited bigint NOT NULL,
    settled bigint NOT NULL,
    failed bigint NOT NULL,
    agents bigint NOT NULL,
    CONSTRAINT call_totals_pkey PRIMARY KEY (operator_id)
);

CREATE TABLE calls (
    seq bigint DEFAULT nextval('calls_seq_seq'::regclass) NOT NULL,
    operator_id character varying(36) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    at_us bigint NOT NULL,
    request_id character varying(64) NOT NULL,
    method character varying(32) NOT NULL,
    path text NOT NULL,
    agent_id character varying(80),
    agent_address character varying(64),
    identity_proven boolean NOT NULL,
    payer character varying(64),
    client character varying(64) NOT NULL,
    tier character varying(3),
    score double precision,
    status integer NOT NULL,
    outcome character varying(32) NOT NULL,
    latency_us bigint NOT NULL,
    cost bigint NOT NULL,
    payment_id character varying(36),
    request_bytes bigint NOT NULL,
    response_bytes bigint NOT NULL,
    chain character varying(64),
    route character varying(16),
    agent_key bigint,
    wrapper_key bigint DEFAULT '0'::bigint NOT NULL,
    would_deny character varying(32),
    CONSTRAINT calls_pkey PRIMARY KEY (seq)
);
CREATE INDEX ix_calls_agent ON public.calls USING btree (agent_key, at_us, seq, wrapper_key);
CREATE INDEX ix_calls_operator ON public.calls USING btree (operator_id, at_us, seq);
CREATE INDEX ix_calls_payment ON public.calls USING btree (payment_id) WHERE (payment_id IS NOT NULL);
CREATE INDEX ix_calls_wrapper ON public.calls USING btree (wrapper_key, at_us, seq);

CREATE TABLE chain_feedback (
    network character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    client character varying(64) NOT NULL,
    number bigint NOT NULL,
    block bigint NOT NULL,
    day integer NOT NULL,
    rating double precision,
    uri character varying(512) NOT NULL,
    digest character varying(64) NOT NULL,
    file character varying(12) NOT NULL,
    file_day integer DEFAULT 0 NOT NULL,
    CONSTRAINT chain_feedback_pkey PRIMARY KEY (network, agent_id, client, number)
);
CREATE INDEX ix_chain_feedback_block ON public.chain_feedback USING btree (network, block);
CREATE INDEX ix_chain_feedback_file ON public.chain_feedback USING btree (file, file_day);

CREATE TABLE chain_fundings (
    network character varying(64) NOT NULL,
    account character varying(64) NOT NULL,
    funder character varying(64) NOT NULL,
    block bigint NOT NULL,
    CONSTRAINT chain_fundings_pkey PRIMARY KEY (network, account)
);
CREATE INDEX ix_chain_fundings_block ON public.chain_fundings USING btree (network, block);
CREATE INDEX ix_chain_fundings_funder ON public.chain_fundings USING btree (network, funder);

CREATE TABLE chain_notes (
    network character varying(64) NOT NULL,
    tx character varying(66) NOT NULL,
    log integer NOT NULL,
    agent_id character varying(80) NOT NULL,
    client character varying(64) NOT NULL,
    number bigint NOT NULL,
    block bigint NOT NULL,
    is_revocation boolean NOT NULL,
    CONSTRAINT chain_notes_pkey PRIMARY KEY (network, tx, log)
);
CREATE INDEX ix_chain_notes_agent ON public.chain_notes USING btree (network, agent_id);
CREATE INDEX ix_chain_notes_block ON public.chain_notes USING btree (network, block);

CREATE TABLE chain_owners (
    network character varying(64) NOT NULL,
    tx character varying(66) NOT NULL,
    log integer NOT NULL,
    agent_id character varying(80) NOT NULL,
    owner character varying(64) NOT NULL,
    block bigint NOT NULL,
    CONSTRAINT chain_owners_pkey PRIMARY KEY (network, tx, log)
);
CREATE INDEX ix_chain_owners_agent ON public.chain_owners USING btree (network, agent_id);
CREATE INDEX ix_chain_owners_block ON public.chain_owners USING btree (network, block);

CREATE TABLE chain_proofs (
    network character varying(64) NOT NULL,
    tx character varying(66) NOT NULL,
    log integer NOT NULL,
    registry character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    client character varying(64) NOT NULL,
    number bigint NOT NULL,
    recipient character varying(64) NOT NULL,
    amount bigint NOT NULL,
    block bigint NOT NULL,
    day integer NOT NULL,
    is_charge boolean NOT NULL,
    CONSTRAINT chain_proofs_pkey PRIMARY KEY (network, tx, log)
);
CREATE INDEX ix_chain_proofs_agent ON public.chain_proofs USING btree (registry, agent_id);
CREATE INDEX ix_chain_proofs_block ON public.chain_proofs USING btree (network, block);

CREATE TABLE chain_transfers (
    network character varying(64) NOT NULL,
    tx character varying(66) NOT NULL,
    log integer NOT NULL,
    sender character varying(64) NOT NULL,
    recipient character varying(64) NOT NULL,
    amount bigint NOT NULL,
    block bigint NOT NULL,
    day integer NOT NULL,
    is_charge boolean NOT NULL,
    CONSTRAINT chain_transfers_pkey PRIMARY KEY (network, tx, log)
);
CREATE INDEX ix_chain_transfers_block ON public.chain_transfers USING btree (network, block);
CREATE INDEX ix_chain_transfers_recipient ON public.chain_transfers USING btree (network, recipient);
CREATE INDEX ix_chain_transfers_sender ON public.chain_transfers USING btree (network, sender);

CREATE TABLE content_bands (
    band character varying(40) NOT NULL,
    subject_key character varying(160) NOT NULL,
    seen_us bigint NOT NULL,
    CONSTRAINT content_bands_pkey PRIMARY KEY (band, subject_key)
);
CREATE INDEX ix_content_bands_seen ON public.content_bands USING btree (seen_us);
CREATE INDEX ix_content_bands_subject ON public.content_bands USING btree (subject_key);

CREATE TABLE control_keys (
    subject_key character varying(160) NOT NULL,
    key character varying(300) NOT NULL,
    proof character varying(16) NOT NULL,
    disputed boolean NOT NULL,
    seen_us bigint NOT NULL,
    CONSTRAINT control_keys_pkey PRIMARY KEY (subject_key, key)
);
CREATE INDEX ix_control_keys_key ON public.control_keys USING btree (key, seen_us);
CREATE INDEX ix_control_keys_seen ON public.control_keys USING btree (seen_us);

CREATE TABLE course_calls (
    seq bigint DEFAULT nextval('course_calls_seq_seq'::regclass) NOT NULL,
    id character varying(36) NOT NULL,
    run_id character varying(36) NOT NULL,
    step integer NOT NULL,
    at_ms bigint NOT NULL,
    ended_ms bigint,
    trail text NOT NULL,
    facts text NOT NULL,
    CONSTRAINT course_calls_run_id_fkey FOREIGN KEY (run_id) REFERENCES course_runs(id),
    CONSTRAINT course_calls_pkey PRIMARY KEY (seq),
    CONSTRAINT course_calls_id_key UNIQUE (id)
);
CREATE INDEX ix_course_calls_run ON public.course_calls USING btree (run_id, seq);

CREATE TABLE course_runs (
    id character varying(36) NOT NULL,
    address character varying(64) NOT NULL,
    seed character varying(64) NOT NULL,
    steps text NOT NULL,
    begun_us bigint NOT NULL,
    finished_us bigint,
    at_step integer NOT NULL,
    seen text,
    CONSTRAINT course_runs_pkey PRIMARY KEY (id)
);
CREATE INDEX ix_course_runs_address ON public.course_runs USING btree (address, finished_us);
CREATE INDEX ix_course_runs_finished ON public.course_runs USING btree (finished_us, begun_us);

CREATE TABLE daily_budgets (
    name character varying(120) NOT NULL,
    day integer NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT daily_budgets_pkey PRIMARY KEY (name, day)
);

CREATE TABLE daily_costs (
    bearer character varying(100) NOT NULL,
    cost character varying(32) NOT NULL,
    day integer NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT daily_costs_pkey PRIMARY KEY (bearer, cost, day)
);
CREATE INDEX ix_daily_costs_used ON public.daily_costs USING btree (cost, day, used);

CREATE TABLE dashboard_sessions (
    id character varying(36) NOT NULL,
    operator_id character varying(36) NOT NULL,
    created_us bigint NOT NULL,
    used_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    user_agent text NOT NULL,
    client character varying(64) NOT NULL,
    CONSTRAINT dashboard_sessions_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT dashboard_sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX ix_dashboard_sessions_expires ON public.dashboard_sessions USING btree (expires_us);
CREATE INDEX ix_dashboard_sessions_operator ON public.dashboard_sessions USING btree (operator_id, created_us);

CREATE TABLE earlier_keys (
    id integer DEFAULT nextval('earlier_keys_id_seq'::regclass) NOT NULL,
    kids text NOT NULL,
    until_us bigint,
    CONSTRAINT earlier_keys_pkey PRIMARY KEY (id)
);

CREATE TABLE egress_usage (
    seq bigint DEFAULT nextval('egress_usage_seq_seq'::regclass) NOT NULL,
    exchange character varying(36) NOT NULL,
    budget character varying(32) NOT NULL,
    is_shared integer NOT NULL,
    account character varying(36) NOT NULL,
    bytes bigint NOT NULL,
    expires_us bigint NOT NULL,
    CONSTRAINT egress_usage_pkey PRIMARY KEY (seq)
);
CREATE INDEX ix_egress_usage_budget ON public.egress_usage USING btree (budget, expires_us);
CREATE INDEX ix_egress_usage_exchange ON public.egress_usage USING btree (exchange);
CREATE INDEX ix_egress_usage_expires ON public.egress_usage USING btree (expires_us);

CREATE TABLE endpoint_days (
    operator_id character varying(36) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    day integer NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    CONSTRAINT endpoint_days_pkey PRIMARY KEY (operator_id, wrapper_id, day)
);

CREATE TABLE endpoint_totals (
    operator_id character varying(36) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    revenue bigint NOT NULL,
    CONSTRAINT endpoint_totals_pkey PRIMARY KEY (operator_id, wrapper_id)
);

CREATE TABLE evaluations (
    id character varying(36) NOT NULL,
    subject_key character varying(160) NOT NULL,
    chain character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    wallet character varying(64) NOT NULL,
    collected text NOT NULL,
    unavailable text NOT NULL,
    score double precision NOT NULL,
    tier character varying(3) NOT NULL,
    risk_level character varying(8) NOT NULL,
    route character varying(16) NOT NULL,
    evaluated_us bigint NOT NULL,
    rung integer,
    policy text,
    CONSTRAINT evaluations_pkey PRIMARY KEY (id)
);
CREATE INDEX ix_evaluations_subject ON public.evaluations USING btree (subject_key, evaluated_us);
CREATE INDEX ix_evaluations_used ON public.evaluations USING btree (wallet, evaluated_us) WHERE (rung >= 3);

CREATE TABLE free_calls (
    wrapper_id character varying(36) NOT NULL,
    per character varying(5) NOT NULL,
    agent character varying(160) NOT NULL,
    period character varying(10) NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT free_calls_pkey PRIMARY KEY (wrapper_id, per, agent)
);
CREATE INDEX ix_free_calls_period ON public.free_calls USING btree (per, period);

CREATE TABLE gas_accounts (
    operator_id character varying(36) NOT NULL,
    currency character varying(32) NOT NULL,
    balance bigint NOT NULL,
    CONSTRAINT gas_accounts_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT gas_accounts_pkey PRIMARY KEY (operator_id, currency)
);

CREATE TABLE host_visits (
    host character varying(255) NOT NULL,
    day integer NOT NULL,
    has_control integer NOT NULL,
    visits integer NOT NULL,
    CONSTRAINT host_visits_pkey PRIMARY KEY (host, day, has_control)
);
CREATE INDEX ix_host_visits_day ON public.host_visits USING btree (day);

CREATE TABLE index_streams (
    kind character varying(16) NOT NULL,
    network character varying(64) NOT NULL,
    subject character varying(64) NOT NULL,
    block bigint NOT NULL,
    block_hash character varying(66) NOT NULL,
    rows integer NOT NULL,
    is_done boolean NOT NULL,
    is_whole boolean DEFAULT false NOT NULL,
    asked_day integer DEFAULT 0 NOT NULL,
    CONSTRAINT index_streams_pkey PRIMARY KEY (kind, network, subject)
);
CREATE INDEX ix_index_streams_asked ON public.index_streams USING btree (kind, asked_day);
CREATE INDEX ix_index_streams_due ON public.index_streams USING btree (kind, network, is_done, block);

CREATE TABLE key_agents (
    address character varying(42) NOT NULL,
    verified_us bigint NOT NULL,
    CONSTRAINT key_agents_pkey PRIMARY KEY (address)
);
CREATE INDEX ix_key_agents_verified ON public.key_agents USING btree (verified_us);

CREATE TABLE listed_agent_hosts (
    host character varying(255) NOT NULL,
    subject_key character varying(160) NOT NULL,
    CONSTRAINT listed_agent_hosts_pkey PRIMARY KEY (host, subject_key)
);
CREATE INDEX ix_listed_agent_hosts_subject ON public.listed_agent_hosts USING btree (subject_key);

CREATE TABLE listed_agents (
    id bigint DEFAULT nextval('listed_agents_id_seq'::regclass) NOT NULL,
    subject_key character varying(160) NOT NULL,
    chain character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    wallet character varying(64) NOT NULL,
    owner character varying(64) NOT NULL,
    name character varying(80) NOT NULL,
    name_key character varying(80) NOT NULL,
    description text NOT NULL,
    services text NOT NULL,
    protocols integer NOT NULL,
    score_cents bigint NOT NULL,
    tier character varying(3) NOT NULL,
    rung integer,
    evaluated_us bigint NOT NULL,
    before_cents bigint,
    CONSTRAINT listed_agents_pkey PRIMARY KEY (id),
    CONSTRAINT listed_agents_subject_key_key UNIQUE (subject_key)
);
CREATE INDEX ix_listed_agents_agent_id ON public.listed_agents USING btree (agent_id);
CREATE INDEX ix_listed_agents_chain_evaluated_us ON public.listed_agents USING btree (chain, evaluated_us, id);
CREATE INDEX ix_listed_agents_chain_score_cents ON public.listed_agents USING btree (chain, score_cents, id);
CREATE INDEX ix_listed_agents_evaluated_us ON public.listed_agents USING btree (evaluated_us, id);
CREATE INDEX ix_listed_agents_name_key ON public.listed_agents USING btree (name_key);
CREATE INDEX ix_listed_agents_owner ON public.listed_agents USING btree (owner);
CREATE INDEX ix_listed_agents_protocol_0_evaluated_us ON public.listed_agents USING btree (evaluated_us, id) WHERE ((protocols & 1) <> 0);
CREATE INDEX ix_listed_agents_protocol_0_score_cents ON public.listed_agents USING btree (score_cents, id) WHERE ((protocols & 1) <> 0);
CREATE INDEX ix_listed_agents_protocol_1_evaluated_us ON public.listed_agents USING btree (evaluated_us, id) WHERE ((protocols & 2) <> 0);
CREATE INDEX ix_listed_agents_protocol_1_score_cents ON public.listed_agents USING btree (score_cents, id) WHERE ((protocols & 2) <> 0);
CREATE INDEX ix_listed_agents_protocol_2_evaluated_us ON public.listed_agents USING btree (evaluated_us, id) WHERE ((protocols & 4) <> 0);
CREATE INDEX ix_listed_agents_protocol_2_score_cents ON public.listed_agents USING btree (score_cents, id) WHERE ((protocols & 4) <> 0);
CREATE INDEX ix_listed_agents_protocol_3_evaluated_us ON public.listed_agents USING btree (evaluated_us, id) WHERE ((protocols & 8) <> 0);
CREATE INDEX ix_listed_agents_protocol_3_score_cents ON public.listed_agents USING btree (score_cents, id) WHERE ((protocols & 8) <> 0);
CREATE INDEX ix_listed_agents_protocol_4_evaluated_us ON public.listed_agents USING btree (evaluated_us, id) WHERE ((protocols & 16) <> 0);
CREATE INDEX ix_listed_agents_protocol_4_score_cents ON public.listed_agents USING btree (score_cents, id) WHERE ((protocols & 16) <> 0);
CREATE INDEX ix_listed_agents_score_cents ON public.listed_agents USING btree (score_cents, id);
CREATE INDEX ix_listed_agents_tier_evaluated_us ON public.listed_agents USING btree (tier, evaluated_us, id);
CREATE INDEX ix_listed_agents_tier_score_cents ON public.listed_agents USING btree (tier, score_cents, id);
CREATE INDEX ix_listed_agents_wallet ON public.listed_agents USING btree (wallet);

CREATE TABLE login_origins (
    operator_id character varying(36) NOT NULL,
    origin character varying(64) NOT NULL,
    used_us bigint NOT NULL,
    CONSTRAINT login_origins_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT login_origins_pkey PRIMARY KEY (operator_id, origin)
);

CREATE TABLE observed_totals (
    operator_id character varying(36) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    would_deny bigint NOT NULL,
    CONSTRAINT observed_totals_pkey PRIMARY KEY (operator_id, wrapper_id)
);

CREATE TABLE open_findings (
    subject_key character varying(160) NOT NULL,
    check_name character varying(64) NOT NULL,
    opened_us bigint NOT NULL,
    seen_us bigint NOT NULL,
    CONSTRAINT open_findings_pkey PRIMARY KEY (subject_key, check_name)
);
CREATE INDEX ix_open_findings_seen ON public.open_findings USING btree (seen_us);

CREATE TABLE operators (
    id character varying(36) NOT NULL,
    email text NOT NULL,
    email_lower text NOT NULL,
    name text NOT NULL,
    role character varying(16) NOT NULL,
    plan character varying(16) NOT NULL,
    fee_rate character varying(32) NOT NULL,
    password_hash text NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    suspended_us bigint,
    email_verified_us bigint,
    totp_secret bytea,
    totp_confirmed_us bigint,
    totp_step bigint,
    sign_up_origin character varying(64),
    deleted_us bigint,
    self_registered boolean DEFAULT true NOT NULL,
    CONSTRAINT operators_pkey PRIMARY KEY (id),
    CONSTRAINT operators_email_lower_key UNIQUE (email_lower)
);
CREATE INDEX ix_operators_origin ON public.operators USING btree (sign_up_origin, created_us);

CREATE TABLE paid_calls (
    id character varying(36) NOT NULL,
    subject_key character varying(160) NOT NULL,
    service character varying(2048) NOT NULL,
    payee character varying(42) NOT NULL,
    owner character varying(64) NOT NULL,
    site character varying(255) NOT NULL,
    domain character varying(255) NOT NULL,
    network character varying(32) NOT NULL,
    sender character varying(42) NOT NULL,
    wallet character varying(42) NOT NULL,
    amount bigint NOT NULL,
    cost bigint NOT NULL,
    opened_us bigint NOT NULL,
    nonce bigint,
    raw text NOT NULL,
    transaction_hash character varying(66) NOT NULL,
    is_filled boolean NOT NULL,
    tries integer NOT NULL,
    is_proven boolean NOT NULL,
    taken bigint NOT NULL,
    bought text,
    kept_us bigint,
    CONSTRAINT paid_calls_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_paid_calls_nonce ON public.paid_calls USING btree (sender, network, nonce);
CREATE INDEX ix_paid_calls_opened ON public.paid_calls USING btree (opened_us);
CREATE INDEX ix_paid_calls_payee ON public.paid_calls USING btree (payee, opened_us);
CREATE INDEX ix_paid_calls_subject ON public.paid_calls USING btree (subject_key, opened_us);

CREATE TABLE paid_responses (
    payment_id character varying(36) NOT NULL,
    status integer NOT NULL,
    headers text NOT NULL,
    body bytea NOT NULL,
    stored_us bigint NOT NULL,
    receipt text DEFAULT ''::text NOT NULL,
    CONSTRAINT paid_responses_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
    CONSTRAINT paid_responses_pkey PRIMARY KEY (payment_id)
);
CREATE INDEX ix_paid_responses_stored ON public.paid_responses USING btree (stored_us);

CREATE TABLE payments (
    id character varying(36) NOT NULL,
    protocol character varying(8) NOT NULL,
    network character varying(32) NOT NULL,
    asset character varying(42) NOT NULL,
    payer character varying(64) NOT NULL,
    nonce character varying(80) NOT NULL,
    digest character varying(64) NOT NULL,
    amount bigint NOT NULL,
    pay_to character varying(42) NOT NULL,
    operator_id character varying(36) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    request_digest character varying(64) NOT NULL,
    state character varying(10) NOT NULL,
    tx character varying(80) NOT NULL,
    raw_tx text NOT NULL,
    reason text NOT NULL,
    credential text NOT NULL,
    version integer NOT NULL,
    identifier character varying(128),
    expires_us bigint NOT NULL,
    lease_us bigint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    moves integer NOT NULL,
    settled_us bigint,
    agent_id character varying(80) DEFAULT ''::character varying NOT NULL,
    fee_token character varying(42) DEFAULT ''::character varying NOT NULL,
    fee_most bigint DEFAULT '0'::bigint NOT NULL,
    gas_payer character varying(8) DEFAULT ''::character varying NOT NULL,
    gas_currency character varying(32) DEFAULT ''::character varying NOT NULL,
    gas_reserved bigint DEFAULT '0'::bigint NOT NULL,
    gas_spent bigint,
    earlier_tx text DEFAULT ''::text NOT NULL,
    look_us bigint DEFAULT '0'::bigint NOT NULL,
    questions integer DEFAULT 0 NOT NULL,
    misses integer DEFAULT 0 NOT NULL,
    watch_us bigint,
    wrapper_revision integer DEFAULT 1 NOT NULL,
    idempotency_key character varying(36) DEFAULT ''::character varying NOT NULL,
    fee_rate character varying(32),
    direct_fee bigint DEFAULT '0'::bigint NOT NULL,
    direct_fee_payee character varying(42) DEFAULT ''::character varying NOT NULL,
    is_used boolean DEFAULT false NOT NULL,
    CONSTRAINT payments_pkey PRIMARY KEY (id)
);
CREATE INDEX ix_payments_digest ON public.payments USING btree (network, digest);
CREATE INDEX ix_payments_ended ON public.payments USING btree (expires_us) WHERE (((state)::text = ANY ((ARRAY['released'::character varying, 'failed'::character varying])::text[])) AND (watch_us IS NULL) AND (settled_us IS NULL));
CREATE INDEX ix_payments_operator ON public.payments USING btree (operator_id, created_us);
CREATE INDEX ix_payments_payer ON public.payments USING btree (network, asset, payer, state);
CREATE INDEX ix_payments_revision ON public.payments USING btree (wrapper_id, wrapper_revision) WHERE (wrapper_revision > 1);
CREATE INDEX ix_payments_settled ON public.payments USING btree (settled_us) WHERE (settled_us IS NOT NULL);
CREATE INDEX ix_payments_state ON public.payments USING btree (state, lease_us);
CREATE UNIQUE INDEX ix_payments_unique ON public.payments USING btree (network, asset, payer, nonce);
CREATE INDEX ix_payments_watch_settled ON public.payments USING btree (network, watch_us) WHERE ((watch_us IS NOT NULL) AND (settled_us IS NOT NULL));
CREATE INDEX ix_payments_watch_unpaid ON public.payments USING btree (network, watch_us) WHERE ((watch_us IS NOT NULL) AND (settled_us IS NULL));

CREATE TABLE personhood (
    subject_key character varying(200) NOT NULL,
    agent_id character varying(80) NOT NULL,
    level character varying(32) NOT NULL,
    scope text NOT NULL,
    nullifier character varying(66) NOT NULL,
    verified_us bigint NOT NULL,
    CONSTRAINT personhood_pkey PRIMARY KEY (subject_key),
    CONSTRAINT uq_personhood_human UNIQUE (scope, nullifier)
);

CREATE TABLE recovery_codes (
    operator_id character varying(36) NOT NULL,
    code_hash character varying(64) NOT NULL,
    CONSTRAINT recovery_codes_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT recovery_codes_pkey PRIMARY KEY (operator_id, code_hash)
);

CREATE TABLE removed_calls (
    operator_id character varying(36) NOT NULL,
    agent_id character varying(80) NOT NULL,
    wrapper_id character varying(36) NOT NULL,
    day integer NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    latency_us bigint NOT NULL,
    asked bigint NOT NULL,
    denied bigint NOT NULL,
    limited bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    CONSTRAINT removed_calls_pkey PRIMARY KEY (operator_id, agent_id, wrapper_id, day)
);

CREATE TABLE removed_payments (
    operator_id character varying(36) NOT NULL,
    day integer NOT NULL,
    gas_currency character varying(32) NOT NULL,
    failed bigint NOT NULL,
    gas_spent bigint NOT NULL,
    CONSTRAINT removed_payments_pkey PRIMARY KEY (operator_id, day, gas_currency)
);

CREATE TABLE removed_snapshots (
    subject_key character varying(160) NOT NULL,
    snapshot_hash character varying(66) NOT NULL,
    CONSTRAINT removed_snapshots_pkey PRIMARY KEY (subject_key)
);

CREATE TABLE service_credentials (
    id character varying(36) NOT NULL,
    subject_key character varying(160) NOT NULL,
    chain character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    owner character varying(64) NOT NULL,
    url character varying(1024) NOT NULL,
    place character varying(8) NOT NULL,
    name character varying(64) NOT NULL,
    sealed bytea NOT NULL,
    created_us bigint NOT NULL,
    used_us bigint,
    outcome character varying(12),
    CONSTRAINT service_credentials_pkey PRIMARY KEY (id),
    CONSTRAINT uq_service_credentials_url UNIQUE (subject_key, url)
);
CREATE INDEX ix_service_credentials_owner ON public.service_credentials USING btree (owner);
CREATE INDEX ix_service_credentials_used ON public.service_credentials USING btree (used_us, created_us);

CREATE TABLE snapshots (
    seq bigint DEFAULT nextval('snapshots_seq_seq'::regclass) NOT NULL,
    id character varying(36) NOT NULL,
    evaluation_id character varying(36) NOT NULL,
    subject_key character varying(160) NOT NULL,
    agent_id character varying(80) NOT NULL,
    snapshot_hash character varying(66) NOT NULL,
    previous_hash character varying(66) NOT NULL,
    encrypted_data_uri text,
    interaction_count integer NOT NULL,
    taken_us bigint NOT NULL,
    evidence_hash character varying(66),
    record text,
    CONSTRAINT snapshots_evaluation_id_fkey FOREIGN KEY (evaluation_id) REFERENCES evaluations(id),
    CONSTRAINT snapshots_pkey PRIMARY KEY (seq),
    CONSTRAINT snapshots_id_key UNIQUE (id)
);
CREATE INDEX ix_snapshots_evaluation ON public.snapshots USING btree (evaluation_id);
CREATE INDEX ix_snapshots_subject ON public.snapshots USING btree (subject_key, seq);

CREATE TABLE state (
    key character varying(200) NOT NULL,
    value text NOT NULL,
    expires_us bigint NOT NULL,
    CONSTRAINT state_pkey PRIMARY KEY (key)
);
CREATE INDEX ix_state_expires ON public.state USING btree (expires_us);

CREATE TABLE tier_quotes (
    wrapper_id character varying(36) NOT NULL,
    agent character varying(160) NOT NULL,
    revision integer NOT NULL,
    price bigint NOT NULL,
    until_us bigint NOT NULL,
    CONSTRAINT tier_quotes_pkey PRIMARY KEY (wrapper_id, agent, revision, price)
);
CREATE INDEX ix_tier_quotes_until ON public.tier_quotes USING btree (until_us);

CREATE TABLE transfer_transactions (
    network character varying(32) NOT NULL,
    tx character varying(80) NOT NULL,
    transfer_id character varying(36) NOT NULL,
    raw_tx text NOT NULL,
    fee bigint NOT NULL,
    tip bigint NOT NULL,
    created_us bigint NOT NULL,
    CONSTRAINT transfer_transactions_transfer_id_fkey FOREIGN KEY (transfer_id) REFERENCES transfers(id),
    CONSTRAINT transfer_transactions_pkey PRIMARY KEY (network, tx)
);
CREATE INDEX ix_transfer_transactions_transfer ON public.transfer_transactions USING btree (transfer_id);

CREATE TABLE transfers (
    id character varying(36) NOT NULL,
    kind character varying(8) NOT NULL,
    operator_id character varying(36) NOT NULL,
    payment_id character varying(36),
    network character varying(32) NOT NULL,
    asset character varying(42) NOT NULL,
    sender character varying(42) NOT NULL,
    recipient character varying(64) NOT NULL,
    amount bigint NOT NULL,
    of_balance boolean NOT NULL,
    fee_rate character varying(32),
    state character varying(10) NOT NULL,
    nonce bigint,
    tx character varying(80) NOT NULL,
    reason text NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    check_us bigint NOT NULL,
    moves bigint NOT NULL,
    CONSTRAINT transfers_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_transfers_nonce ON public.transfers USING btree (network, sender, nonce) WHERE (nonce IS NOT NULL);
CREATE INDEX ix_transfers_of ON public.transfers USING btree (payment_id);
CREATE INDEX ix_transfers_operator ON public.transfers USING btree (operator_id, created_us);
CREATE UNIQUE INDEX ix_transfers_payment ON public.transfers USING btree (payment_id) WHERE ((payment_id IS NOT NULL) AND ((state)::text <> 'cancelled'::text));
CREATE INDEX ix_transfers_state ON public.transfers USING btree (state, check_us);

CREATE TABLE visit_requests (
    kind character varying(8) NOT NULL,
    holder character varying(64) NOT NULL,
    subject_key character varying(160) NOT NULL,
    chain character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    created_us bigint NOT NULL,
    CONSTRAINT visit_requests_pkey PRIMARY KEY (kind, holder, subject_key)
);
CREATE INDEX ix_visit_requests_subject ON public.visit_requests USING btree (subject_key);

CREATE TABLE visit_schedule (
    subject_key character varying(160) NOT NULL,
    chain character varying(64) NOT NULL,
    agent_id character varying(80) NOT NULL,
    host character varying(255) NOT NULL,
    has_control integer NOT NULL,
    rank integer NOT NULL,
    reason character varying(24) NOT NULL,
    due_us bigint NOT NULL,
    planned_us bigint NOT NULL,
    confirms integer NOT NULL,
    tries integer NOT NULL,
    visited_us bigint NOT NULL,
    asked_us bigint NOT NULL,
    lease_us bigint NOT NULL,
    quiet_us bigint DEFAULT '0'::bigint NOT NULL,
    CONSTRAINT visit_schedule_pkey PRIMARY KEY (subject_key)
);
CREATE INDEX ix_visit_schedule_asked ON public.visit_schedule USING btree (rank, asked_us);
CREATE INDEX ix_visit_schedule_due ON public.visit_schedule USING btree (has_control, rank, due_us);

CREATE TABLE visit_seeds (
    commitment character varying(64) NOT NULL,
    subject_key character varying(160) NOT NULL,
    at_us bigint NOT NULL,
    CONSTRAINT visit_seeds_pkey PRIMARY KEY (commitment)
);
CREATE INDEX ix_visit_seeds_at ON public.visit_seeds USING btree (at_us);

CREATE TABLE visits (
    seq bigint DEFAULT nextval('visits_seq_seq'::regclass) NOT NULL,
    subject_key character varying(160) NOT NULL,
    at_us bigint NOT NULL,
    timing character varying(10) NOT NULL,
    label character varying(12) NOT NULL,
    rung integer NOT NULL,
    is_critical integer NOT NULL,
    seen text NOT NULL,
    CONSTRAINT visits_pkey PRIMARY KEY (seq)
);
CREATE INDEX ix_visits_at ON public.visits USING btree (at_us);
CREATE INDEX ix_visits_subject ON public.visits USING btree (subject_key, at_us);

CREATE TABLE webhook_agents (
    webhook_id character varying(36) NOT NULL,
    agent_id character varying(80) NOT NULL,
    CONSTRAINT webhook_agents_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id),
    CONSTRAINT webhook_agents_pkey PRIMARY KEY (webhook_id, agent_id)
);
CREATE INDEX ix_webhook_agents_agent ON public.webhook_agents USING btree (agent_id, webhook_id);

CREATE TABLE webhook_deliveries (
    seq bigint DEFAULT nextval('webhook_deliveries_seq_seq'::regclass) NOT NULL,
    id character varying(36) NOT NULL,
    webhook_id character varying(36) NOT NULL,
    operator_id character varying(36) NOT NULL,
    url text NOT NULL,
    agent_id character varying(80) NOT NULL,
    payload text NOT NULL,
    state character varying(8) NOT NULL,
    status integer,
    reason text,
    created_us bigint NOT NULL,
    begun_us bigint,
    ended_us bigint,
    domain character varying(255),
    wait_until_us bigint DEFAULT '0'::bigint NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (seq),
    CONSTRAINT webhook_deliveries_id_key UNIQUE (id)
);
CREATE INDEX ix_webhook_deliveries_domain ON public.webhook_deliveries USING btree (state, domain);
CREATE INDEX ix_webhook_deliveries_operator ON public.webhook_deliveries USING btree (operator_id, seq);
CREATE INDEX ix_webhook_deliveries_state ON public.webhook_deliveries USING btree (state, seq);
CREATE INDEX ix_webhook_deliveries_turn ON public.webhook_deliveries USING btree (state, operator_id, seq, wait_until_us);

CREATE TABLE webhook_events (
    seq bigint DEFAULT nextval('webhook_events_seq_seq'::regclass) NOT NULL,
    agent_id character varying(80) NOT NULL,
    bodies text NOT NULL,
    created_us bigint NOT NULL,
    after_operator character varying(36) NOT NULL,
    CONSTRAINT webhook_events_pkey PRIMARY KEY (seq)
);

CREATE TABLE webhooks (
    id character varying(36) NOT NULL,
    operator_id character varying(36) NOT NULL,
    event character varying(32) NOT NULL,
    url text NOT NULL,
    agent_ids text,
    secret bytea,
    created_us bigint NOT NULL,
    CONSTRAINT webhooks_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT webhooks_pkey PRIMARY KEY (id)
);
CREATE INDEX ix_webhooks_operator ON public.webhooks USING btree (operator_id, created_us);

CREATE TABLE wrapper_conduct (
    address character varying(64) NOT NULL,
    day character varying(10) NOT NULL,
    calls bigint NOT NULL,
    limited bigint NOT NULL,
    early bigint NOT NULL,
    error_run bigint NOT NULL,
    CONSTRAINT wrapper_conduct_pkey PRIMARY KEY (address, day)
);
CREATE INDEX ix_wrapper_conduct_day ON public.wrapper_conduct USING btree (day);

CREATE TABLE wrapper_revisions (
    wrapper_id character varying(36) NOT NULL,
    revision integer NOT NULL,
    operator_id character varying(36) NOT NULL,
    path text NOT NULL,
    method character varying(32) NOT NULL,
    price bigint NOT NULL,
    description text NOT NULL,
    rate_limit bigint,
    target_url text NOT NULL,
    payment_protocol character varying(8) NOT NULL,
    payment_network character varying(32) NOT NULL,
    payout_address character varying(42),
    trust_enabled boolean NOT NULL,
    min_score double precision NOT NULL,
    identity_proof character varying(16) NOT NULL,
    settle character varying(8) NOT NULL,
    max_body_bytes bigint NOT NULL,
    timeout_ms integer NOT NULL,
    upstream_auth_header text,
    upstream_auth_secret bytea,
    active boolean NOT NULL,
    created_us bigint NOT NULL,
    pass_response_headers text DEFAULT ''::text NOT NULL,
    cors_origins text DEFAULT ''::text NOT NULL,
    at_us bigint NOT NULL,
    until_us bigint,
    actor_kind character varying(16) NOT NULL,
    actor_id character varying(36),
    action character varying(32) NOT NULL,
    changes text NOT NULL,
    cold_start character varying(8),
    pricing text DEFAULT '[]'::text NOT NULL,
    free_calls bigint,
    free_per character varying(5),
    enforce character varying(8) DEFAULT 'enforce'::character varying NOT NULL,
    CONSTRAINT wrapper_revisions_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT wrapper_revisions_pkey PRIMARY KEY (wrapper_id, revision)
);
CREATE INDEX ix_wrapper_revisions_operator ON public.wrapper_revisions USING btree (operator_id);
CREATE INDEX ix_wrapper_revisions_target ON public.wrapper_revisions USING btree (target_url);
CREATE INDEX ix_wrapper_revisions_until ON public.wrapper_revisions USING btree (until_us);

CREATE TABLE wrappers (
    id character varying(36) NOT NULL,
    operator_id character varying(36) NOT NULL,
    path text NOT NULL,
    method character varying(32) NOT NULL,
    route_key text,
    price bigint NOT NULL,
    description text NOT NULL,
    rate_limit bigint,
    target_url text NOT NULL,
    payment_protocol character varying(8) NOT NULL,
    payment_network character varying(32) NOT NULL,
    payout_address character varying(42),
    trust_enabled boolean NOT NULL,
    min_score double precision NOT NULL,
    identity_proof character varying(16) NOT NULL,
    settle character varying(8) NOT NULL,
    max_body_bytes bigint NOT NULL,
    timeout_ms integer NOT NULL,
    upstream_auth_header text,
    upstream_auth_secret bytea,
    active boolean NOT NULL,
    created_us bigint NOT NULL,
    pass_response_headers text DEFAULT ''::text NOT NULL,
    cors_origins text DEFAULT ''::text NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    cold_start character varying(8),
    pricing text DEFAULT '[]'::text NOT NULL,
    free_calls bigint,
    free_per character varying(5),
    enforce character varying(8) DEFAULT 'enforce'::character varying NOT NULL,
    CONSTRAINT wrappers_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operators(id),
    CONSTRAINT wrappers_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_wrappers_route ON public.wrappers USING btree (operator_id, route_key);

FUNCTION CREATE OR REPLACE FUNCTION public.announce_api_keys()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'operator ' || NEW.operator_id); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.announce_evaluations()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'evaluation ' || NEW.subject_key || ' ' || NEW.id); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.announce_operators()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'operator ' || NEW.id); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.announce_personhood()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'personhood ' || NEW.subject_key); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.announce_state()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'session ' || substr(NEW.key, 17)); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.announce_wrappers()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN PERFORM pg_notify('assay.changes', 'operator ' || NEW.operator_id); RETURN NULL; END $function$;

FUNCTION CREATE OR REPLACE FUNCTION public.audit_keeps()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN IF TG_OP = 'UPDATE' THEN IF NEW.seq IS NOT DISTINCT FROM OLD.seq AND NEW.id IS NOT DISTINCT FROM OLD.id AND NEW.at_us IS NOT DISTINCT FROM OLD.at_us AND NEW.actor_kind IS NOT DISTINCT FROM OLD.actor_kind AND NEW.actor_id IS NOT DISTINCT FROM OLD.actor_id AND NEW.action IS NOT DISTINCT FROM OLD.action AND NEW.operator_id IS NOT DISTINCT FROM OLD.operator_id AND NEW.target IS NOT DISTINCT FROM OLD.target AND NEW.client IN (OLD.client, '') AND NEW.request_id IN (OLD.request_id, '') AND NEW.details IN (OLD.details, '{}') AND EXISTS (SELECT 1 FROM operators o WHERE o.deleted_us IS NOT NULL AND (o.id = OLD.operator_id OR o.id = OLD.actor_id)) THEN RETURN NEW; END IF; END IF; RAISE EXCEPTION 'the audit trail is only added to'; END $function$;

SEQUENCE audit_seq_seq bigint;

SEQUENCE calls_seq_seq bigint;

SEQUENCE course_calls_seq_seq bigint;

SEQUENCE earlier_keys_id_seq integer;

SEQUENCE egress_usage_seq_seq bigint;

SEQUENCE listed_agents_id_seq bigint;

SEQUENCE snapshots_seq_seq bigint;

SEQUENCE visits_seq_seq bigint;

SEQUENCE webhook_deliveries_seq_seq bigint;

SEQUENCE webhook_events_seq_seq bigint;

TRIGGER CREATE TRIGGER announce_api_keys AFTER UPDATE OF revoked, scopes, expires_us, gate_policies ON public.api_keys FOR EACH ROW WHEN (true) EXECUTE FUNCTION announce_api_keys();

TRIGGER CREATE TRIGGER announce_evaluations AFTER INSERT ON public.evaluations FOR EACH ROW WHEN (true) EXECUTE FUNCTION announce_evaluations();

TRIGGER CREATE TRIGGER announce_operators AFTER UPDATE OF plan, role, fee_rate, suspended_us, deleted_us ON public.operators FOR EACH ROW WHEN (true) EXECUTE FUNCTION announce_operators();

TRIGGER CREATE TRIGGER announce_personhood AFTER INSERT OR UPDATE ON public.personhood FOR EACH ROW WHEN (true) EXECUTE FUNCTION announce_personhood();

TRIGGER CREATE TRIGGER announce_state AFTER INSERT OR UPDATE ON public.state FOR EACH ROW WHEN (((new.key)::text ~~ 'session-revoked:%'::text)) EXECUTE FUNCTION announce_state();

TRIGGER CREATE TRIGGER announce_wrappers AFTER INSERT OR UPDATE ON public.wrappers FOR EACH ROW WHEN (true) EXECUTE FUNCTION announce_wrappers();

TRIGGER CREATE TRIGGER audit_keeps BEFORE UPDATE ON public.audit FOR EACH ROW EXECUTE FUNCTION audit_keeps();

TRIGGER CREATE TRIGGER audit_keeps_all BEFORE TRUNCATE ON public.audit FOR EACH STATEMENT EXECUTE FUNCTION audit_keeps();

TRIGGER CREATE TRIGGER audit_keeps_delete BEFORE DELETE ON public.audit FOR EACH ROW WHEN (((old.action)::text <> 'login.failed'::text)) EXECUTE FUNCTION audit_keeps();
