CREATE TABLE account_codes (
	code_hash VARCHAR(64) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	operator_id VARCHAR(36),
	email_lower TEXT,
	created_us BIGINT NOT NULL,
	expires_us BIGINT NOT NULL,
	spent_us BIGINT, asked_by VARCHAR(16) DEFAULT 'terminal' NOT NULL, origin VARCHAR(64), mailbox VARCHAR(64),
	PRIMARY KEY (code_hash),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE INDEX ix_account_codes_expires ON account_codes (expires_us);

CREATE INDEX ix_account_codes_mailbox ON account_codes (mailbox);

CREATE INDEX ix_account_codes_operator ON account_codes (operator_id, kind);

CREATE INDEX ix_account_codes_origin ON account_codes (origin);

CREATE TABLE agent_chains (
	operator_id VARCHAR(36) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	PRIMARY KEY (operator_id, agent_id, chain)
)
 WITHOUT ROWID;

CREATE TABLE agent_days (
	operator_id VARCHAR(36) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	day INTEGER NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	PRIMARY KEY (operator_id, agent_id, wrapper_id, day)
)
 WITHOUT ROWID;

CREATE TABLE agent_identities (
	subject_key VARCHAR(160) NOT NULL,
	owner VARCHAR(64) NOT NULL,
	owner_us BIGINT,
	group_key VARCHAR(32),
	skeleton VARCHAR(200) NOT NULL,
	signature TEXT NOT NULL,
	rung INTEGER NOT NULL,
	first_us BIGINT NOT NULL,
	seen_us BIGINT NOT NULL,
	PRIMARY KEY (subject_key)
);

CREATE INDEX ix_agent_identities_group ON agent_identities (group_key);

CREATE INDEX ix_agent_identities_seen ON agent_identities (seen_us);

CREATE INDEX ix_agent_identities_skeleton ON agent_identities (skeleton, rung, first_us);

CREATE TABLE agent_totals (
	operator_id VARCHAR(36) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	first_us BIGINT NOT NULL,
	last_us BIGINT NOT NULL,
	tier VARCHAR(3),
	tier_us BIGINT,
	PRIMARY KEY (operator_id, agent_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_agent_totals_calls ON agent_totals (operator_id, calls, agent_id);

CREATE INDEX ix_agent_totals_errors ON agent_totals (operator_id, errors, agent_id);

CREATE INDEX ix_agent_totals_last_us ON agent_totals (operator_id, last_us, agent_id);

CREATE INDEX ix_agent_totals_revenue ON agent_totals (operator_id, revenue, agent_id);

CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE allowance (
	operator_id VARCHAR(36) NOT NULL,
	month VARCHAR(7) NOT NULL,
	used BIGINT NOT NULL,
	PRIMARY KEY (operator_id, month),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE TABLE api_keys (
	id VARCHAR(36) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	key_hash VARCHAR(64) NOT NULL,
	prefix VARCHAR(32) NOT NULL,
	label TEXT,
	revoked BOOLEAN NOT NULL,
	last_used_us BIGINT,
	created_us BIGINT NOT NULL, scopes TEXT DEFAULT 'evaluate gate proxy webhooks' NOT NULL, expires_us BIGINT, gate_policies TEXT DEFAULT '' NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(operator_id) REFERENCES operators (id),
	UNIQUE (key_hash)
);

CREATE INDEX ix_api_keys_operator ON api_keys (operator_id, created_us);

CREATE TABLE attested_people (
	trait VARCHAR(64) NOT NULL,
	address VARCHAR(64) NOT NULL,
	seen_day INTEGER NOT NULL,
	PRIMARY KEY (trait)
);

CREATE INDEX ix_attested_people_seen ON attested_people (seen_day);

CREATE TRIGGER audit_keeps_delete BEFORE DELETE ON audit WHEN OLD.action <> 'login.failed' BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END;

CREATE TRIGGER audit_keeps_update BEFORE UPDATE ON audit WHEN NOT (NEW.seq IS OLD.seq AND NEW.id IS OLD.id AND NEW.at_us IS OLD.at_us AND NEW.actor_kind IS OLD.actor_kind AND NEW.actor_id IS OLD.actor_id AND NEW.action IS OLD.action AND NEW.operator_id IS OLD.operator_id AND NEW.target IS OLD.target AND NEW.client IN (OLD.client, '') AND NEW.request_id IN (OLD.request_id, '') AND NEW.details IN (OLD.details, '{}') AND EXISTS (SELECT 1 FROM operators o WHERE o.deleted_us IS NOT NULL AND (o.id = OLD.operator_id OR o.id = OLD.actor_id))) BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END;

CREATE TABLE audit (
	seq INTEGER NOT NULL,
	id VARCHAR(36) NOT NULL,
	at_us BIGINT NOT NULL,
	actor_kind VARCHAR(16) NOT NULL,
	actor_id VARCHAR(36),
	client VARCHAR(64) NOT NULL,
	request_id VARCHAR(64) NOT NULL,
	action VARCHAR(32) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	target VARCHAR(64) NOT NULL,
	details TEXT NOT NULL,
	PRIMARY KEY (seq),
	UNIQUE (id)
);

CREATE INDEX ix_audit_actor ON audit (actor_id);

CREATE INDEX ix_audit_failed_logins ON audit (at_us) WHERE action = 'login.failed';

CREATE INDEX ix_audit_operator ON audit (operator_id, seq);

CREATE TABLE call_days (
	operator_id VARCHAR(36) NOT NULL,
	day INTEGER NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	asked BIGINT NOT NULL,
	paid BIGINT NOT NULL,
	denied BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	settled BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	PRIMARY KEY (operator_id, day)
)
 WITHOUT ROWID;

CREATE TABLE call_id_key (
	"key" BLOB NOT NULL
);

CREATE TABLE call_totals (
	operator_id VARCHAR(36) NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	asked BIGINT NOT NULL,
	paid BIGINT NOT NULL,
	denied BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	settled BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	agents BIGINT NOT NULL,
	PRIMARY KEY (operator_id)
)
 WITHOUT ROWID;

CREATE TABLE calls (
	seq INTEGER NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	at_us BIGINT NOT NULL,
	request_id VARCHAR(64) NOT NULL,
	method VARCHAR(32) NOT NULL,
	path TEXT NOT NULL,
	agent_id VARCHAR(80),
	agent_address VARCHAR(64),
	identity_proven BOOLEAN NOT NULL,
	payer VARCHAR(64),
	client VARCHAR(64) NOT NULL,
	tier VARCHAR(3),
	score FLOAT,
	status INTEGER NOT NULL,
	outcome VARCHAR(32) NOT NULL,
	latency_us BIGINT NOT NULL,
	cost BIGINT NOT NULL,
	payment_id VARCHAR(36),
	request_bytes BIGINT NOT NULL,
	response_bytes BIGINT NOT NULL, chain VARCHAR(64), route VARCHAR(16), agent_key BIGINT, wrapper_key BIGINT DEFAULT '0' NOT NULL, would_deny VARCHAR(32),
	PRIMARY KEY (seq)
);

CREATE INDEX ix_calls_agent ON calls (agent_key, at_us, seq, wrapper_key);

CREATE INDEX ix_calls_operator ON calls (operator_id, at_us, seq);

CREATE INDEX ix_calls_payment ON calls (payment_id) WHERE payment_id IS NOT NULL;

CREATE INDEX ix_calls_wrapper ON calls (wrapper_key, at_us, seq);

CREATE TABLE chain_feedback (
	network VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	client VARCHAR(64) NOT NULL,
	number BIGINT NOT NULL,
	block BIGINT NOT NULL,
	day INTEGER NOT NULL,
	rating FLOAT,
	uri VARCHAR(512) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	file VARCHAR(12) NOT NULL, file_day INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (network, agent_id, client, number)
);

CREATE INDEX ix_chain_feedback_block ON chain_feedback (network, block);

CREATE INDEX ix_chain_feedback_file ON chain_feedback (file, file_day);

CREATE TABLE chain_fundings (
	network VARCHAR(64) NOT NULL,
	account VARCHAR(64) NOT NULL,
	funder VARCHAR(64) NOT NULL,
	block BIGINT NOT NULL,
	PRIMARY KEY (network, account)
);

CREATE INDEX ix_chain_fundings_block ON chain_fundings (network, block);

CREATE INDEX ix_chain_fundings_funder ON chain_fundings (network, funder);

CREATE TABLE chain_notes (
	network VARCHAR(64) NOT NULL,
	tx VARCHAR(66) NOT NULL,
	log INTEGER NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	client VARCHAR(64) NOT NULL,
	number BIGINT NOT NULL,
	block BIGINT NOT NULL,
	is_revocation BOOLEAN NOT NULL,
	PRIMARY KEY (network, tx, log)
);

CREATE INDEX ix_chain_notes_agent ON chain_notes (network, agent_id);

CREATE INDEX ix_chain_notes_block ON chain_notes (network, block);

CREATE TABLE chain_owners (
	network VARCHAR(64) NOT NULL,
	tx VARCHAR(66) NOT NULL,
	log INTEGER NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	owner VARCHAR(64) NOT NULL,
	block BIGINT NOT NULL,
	PRIMARY KEY (network, tx, log)
);

CREATE INDEX ix_chain_owners_agent ON chain_owners (network, agent_id);

CREATE INDEX ix_chain_owners_block ON chain_owners (network, block);

CREATE TABLE chain_proofs (
	network VARCHAR(64) NOT NULL,
	tx VARCHAR(66) NOT NULL,
	log INTEGER NOT NULL,
	registry VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	client VARCHAR(64) NOT NULL,
	number BIGINT NOT NULL,
	recipient VARCHAR(64) NOT NULL,
	amount BIGINT NOT NULL,
	block BIGINT NOT NULL,
	day INTEGER NOT NULL,
	is_charge BOOLEAN NOT NULL,
	PRIMARY KEY (network, tx, log)
);

CREATE INDEX ix_chain_proofs_agent ON chain_proofs (registry, agent_id);

CREATE INDEX ix_chain_proofs_block ON chain_proofs (network, block);

CREATE TABLE chain_transfers (
	network VARCHAR(64) NOT NULL,
	tx VARCHAR(66) NOT NULL,
	log INTEGER NOT NULL,
	sender VARCHAR(64) NOT NULL,
	recipient VARCHAR(64) NOT NULL,
	amount BIGINT NOT NULL,
	block BIGINT NOT NULL,
	day INTEGER NOT NULL,
	is_charge BOOLEAN NOT NULL,
	PRIMARY KEY (network, tx, log)
);

CREATE INDEX ix_chain_transfers_block ON chain_transfers (network, block);

CREATE INDEX ix_chain_transfers_recipient ON chain_transfers (network, recipient);

CREATE INDEX ix_chain_transfers_sender ON chain_transfers (network, sender);

CREATE TABLE content_bands (
	band VARCHAR(40) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	seen_us BIGINT NOT NULL,
	PRIMARY KEY (band, subject_key)
);

CREATE INDEX ix_content_bands_seen ON content_bands (seen_us);

CREATE INDEX ix_content_bands_subject ON content_bands (subject_key);

CREATE TABLE control_keys (
	subject_key VARCHAR(160) NOT NULL,
	"key" VARCHAR(300) NOT NULL,
	proof VARCHAR(16) NOT NULL,
	disputed BOOLEAN NOT NULL,
	seen_us BIGINT NOT NULL,
	PRIMARY KEY (subject_key, "key")
);

CREATE INDEX ix_control_keys_key ON control_keys ("key", seen_us);

CREATE INDEX ix_control_keys_seen ON control_keys (seen_us);

CREATE TABLE course_calls (
	seq INTEGER NOT NULL,
	id VARCHAR(36) NOT NULL,
	run_id VARCHAR(36) NOT NULL,
	step INTEGER NOT NULL,
	at_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	trail TEXT NOT NULL,
	facts TEXT NOT NULL,
	PRIMARY KEY (seq),
	FOREIGN KEY(run_id) REFERENCES course_runs (id),
	UNIQUE (id)
);

CREATE INDEX ix_course_calls_run ON course_calls (run_id, seq);

CREATE TABLE course_runs (
	id VARCHAR(36) NOT NULL,
	address VARCHAR(64) NOT NULL,
	seed VARCHAR(64) NOT NULL,
	steps TEXT NOT NULL,
	begun_us BIGINT NOT NULL,
	finished_us BIGINT,
	at_step INTEGER NOT NULL,
	seen TEXT,
	PRIMARY KEY (id)
);

CREATE INDEX ix_course_runs_address ON course_runs (address, finished_us);

CREATE INDEX ix_course_runs_finished ON course_runs (finished_us, begun_us);

CREATE TABLE daily_budgets (
	name VARCHAR(120) NOT NULL,
	day INTEGER NOT NULL,
	used BIGINT NOT NULL,
	PRIMARY KEY (name, day)
);

CREATE TABLE daily_costs (
	bearer VARCHAR(100) NOT NULL,
	cost VARCHAR(32) NOT NULL,
	day INTEGER NOT NULL,
	used BIGINT NOT NULL,
	PRIMARY KEY (bearer, cost, day)
);

CREATE INDEX ix_daily_costs_used ON daily_costs (cost, day, used);

CREATE TABLE dashboard_sessions (
	id VARCHAR(36) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	created_us BIGINT NOT NULL,
	used_us BIGINT NOT NULL,
	expires_us BIGINT NOT NULL,
	user_agent TEXT NOT NULL,
	client VARCHAR(64) NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE INDEX ix_dashboard_sessions_expires ON dashboard_sessions (expires_us);

CREATE INDEX ix_dashboard_sessions_operator ON dashboard_sessions (operator_id, created_us);

CREATE TABLE earlier_keys (
	id INTEGER NOT NULL,
	kids TEXT NOT NULL,
	until_us BIGINT,
	PRIMARY KEY (id)
);

CREATE TABLE egress_usage (
	seq INTEGER NOT NULL,
	exchange VARCHAR(36) NOT NULL,
	budget VARCHAR(32) NOT NULL,
	is_shared INTEGER NOT NULL,
	account VARCHAR(36) NOT NULL,
	bytes BIGINT NOT NULL,
	expires_us BIGINT NOT NULL,
	PRIMARY KEY (seq)
);

CREATE INDEX ix_egress_usage_budget ON egress_usage (budget, expires_us);

CREATE INDEX ix_egress_usage_exchange ON egress_usage (exchange);

CREATE INDEX ix_egress_usage_expires ON egress_usage (expires_us);

CREATE TABLE endpoint_days (
	operator_id VARCHAR(36) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	day INTEGER NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	PRIMARY KEY (operator_id, wrapper_id, day)
)
 WITHOUT ROWID;

CREATE TABLE endpoint_totals (
	operator_id VARCHAR(36) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	revenue BIGINT NOT NULL,
	PRIMARY KEY (operator_id, wrapper_id)
)
 WITHOUT ROWID;

CREATE TABLE evaluations (
	id VARCHAR(36) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	wallet VARCHAR(64) NOT NULL,
	collected TEXT NOT NULL,
	unavailable TEXT NOT NULL,
	score FLOAT NOT NULL,
	tier VARCHAR(3) NOT NULL,
	risk_level VARCHAR(8) NOT NULL,
	route VARCHAR(16) NOT NULL,
	evaluated_us BIGINT NOT NULL, rung INTEGER, policy TEXT,
	PRIMARY KEY (id)
);

CREATE INDEX ix_evaluations_subject ON evaluations (subject_key, evaluated_us);

CREATE INDEX ix_evaluations_used ON evaluations (wallet, evaluated_us) WHERE rung >= 3;

CREATE TABLE free_calls (
	wrapper_id VARCHAR(36) NOT NULL,
	per VARCHAR(5) NOT NULL,
	agent VARCHAR(160) NOT NULL,
	period VARCHAR(10) NOT NULL,
	used BIGINT NOT NULL,
	PRIMARY KEY (wrapper_id, per, agent)
);

CREATE INDEX ix_free_calls_period ON free_calls (per, period);

CREATE TABLE gas_accounts (
	operator_id VARCHAR(36) NOT NULL,
	currency VARCHAR(32) NOT NULL,
	balance BIGINT NOT NULL,
	PRIMARY KEY (operator_id, currency),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE TABLE host_visits (
	host VARCHAR(255) NOT NULL,
	day INTEGER NOT NULL,
	has_control INTEGER NOT NULL,
	visits INTEGER NOT NULL,
	PRIMARY KEY (host, day, has_control)
);

CREATE INDEX ix_host_visits_day ON host_visits (day);

CREATE TABLE index_streams (
	kind VARCHAR(16) NOT NULL,
	network VARCHAR(64) NOT NULL,
	subject VARCHAR(64) NOT NULL,
	block BIGINT NOT NULL,
	block_hash VARCHAR(66) NOT NULL,
	rows INTEGER NOT NULL,
	is_done BOOLEAN NOT NULL, is_whole BOOLEAN DEFAULT 0 NOT NULL, asked_day INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (kind, network, subject)
);

CREATE INDEX ix_index_streams_asked ON index_streams (kind, asked_day);

CREATE INDEX ix_index_streams_due ON index_streams (kind, network, is_done, block);

CREATE TABLE key_agents (
	address VARCHAR(42) NOT NULL,
	verified_us BIGINT NOT NULL,
	PRIMARY KEY (address)
);

CREATE INDEX ix_key_agents_verified ON key_agents (verified_us);

CREATE TABLE listed_agent_hosts (
	host VARCHAR(255) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	PRIMARY KEY (host, subject_key)
);

CREATE INDEX ix_listed_agent_hosts_subject ON listed_agent_hosts (subject_key);

CREATE TABLE listed_agents (
	id INTEGER NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	wallet VARCHAR(64) NOT NULL,
	owner VARCHAR(64) NOT NULL,
	name VARCHAR(80) NOT NULL,
	name_key VARCHAR(80) NOT NULL,
	description TEXT NOT NULL,
	services TEXT NOT NULL,
	protocols INTEGER NOT NULL,
	score_cents BIGINT NOT NULL,
	tier VARCHAR(3) NOT NULL,
	rung INTEGER,
	evaluated_us BIGINT NOT NULL,
	before_cents BIGINT,
	PRIMARY KEY (id),
	UNIQUE (subject_key)
);

CREATE INDEX ix_listed_agents_agent_id ON listed_agents (agent_id);

CREATE INDEX ix_listed_agents_chain_evaluated_us ON listed_agents (chain, evaluated_us, id);

CREATE INDEX ix_listed_agents_chain_score_cents ON listed_agents (chain, score_cents, id);

CREATE INDEX ix_listed_agents_evaluated_us ON listed_agents (evaluated_us, id);

CREATE INDEX ix_listed_agents_name_key ON listed_agents (name_key);

CREATE INDEX ix_listed_agents_owner ON listed_agents (owner);

CREATE INDEX ix_listed_agents_protocol_0_evaluated_us ON listed_agents (evaluated_us, id) WHERE protocols & 1 <> 0;

CREATE INDEX ix_listed_agents_protocol_0_score_cents ON listed_agents (score_cents, id) WHERE protocols & 1 <> 0;

CREATE INDEX ix_listed_agents_protocol_1_evaluated_us ON listed_agents (evaluated_us, id) WHERE protocols & 2 <> 0;

CREATE INDEX ix_listed_agents_protocol_1_score_cents ON listed_agents (score_cents, id) WHERE protocols & 2 <> 0;

CREATE INDEX ix_listed_agents_protocol_2_evaluated_us ON listed_agents (evaluated_us, id) WHERE protocols & 4 <> 0;

CREATE INDEX ix_listed_agents_protocol_2_score_cents ON listed_agents (score_cents, id) WHERE protocols & 4 <> 0;

CREATE INDEX ix_listed_agents_protocol_3_evaluated_us ON listed_agents (evaluated_us, id) WHERE protocols & 8 <> 0;

CREATE INDEX ix_listed_agents_protocol_3_score_cents ON listed_agents (score_cents, id) WHERE protocols & 8 <> 0;

CREATE INDEX ix_listed_agents_protocol_4_evaluated_us ON listed_agents (evaluated_us, id) WHERE protocols & 16 <> 0;

CREATE INDEX ix_listed_agents_protocol_4_score_cents ON listed_agents (score_cents, id) WHERE protocols & 16 <> 0;

CREATE INDEX ix_listed_agents_score_cents ON listed_agents (score_cents, id);

CREATE INDEX ix_listed_agents_tier_evaluated_us ON listed_agents (tier, evaluated_us, id);

CREATE INDEX ix_listed_agents_tier_score_cents ON listed_agents (tier, score_cents, id);

CREATE INDEX ix_listed_agents_wallet ON listed_agents (wallet);

CREATE TABLE login_origins (
	operator_id VARCHAR(36) NOT NULL,
	origin VARCHAR(64) NOT NULL,
	used_us BIGINT NOT NULL,
	PRIMARY KEY (operator_id, origin),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE TABLE observed_totals (
	operator_id VARCHAR(36) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	would_deny BIGINT NOT NULL,
	PRIMARY KEY (operator_id, wrapper_id)
);

CREATE TABLE open_findings (
	subject_key VARCHAR(160) NOT NULL,
	check_name VARCHAR(64) NOT NULL,
	opened_us BIGINT NOT NULL,
	seen_us BIGINT NOT NULL,
	PRIMARY KEY (subject_key, check_name)
);

CREATE INDEX ix_open_findings_seen ON open_findings (seen_us);

CREATE TABLE operators (
	id VARCHAR(36) NOT NULL,
	email TEXT NOT NULL,
	email_lower TEXT NOT NULL,
	name TEXT NOT NULL,
	role VARCHAR(16) NOT NULL,
	"plan" VARCHAR(16) NOT NULL,
	fee_rate VARCHAR(32) NOT NULL,
	password_hash TEXT NOT NULL,
	created_us BIGINT NOT NULL,
	updated_us BIGINT NOT NULL, suspended_us BIGINT, email_verified_us BIGINT, totp_secret BLOB, totp_confirmed_us BIGINT, totp_step BIGINT, sign_up_origin VARCHAR(64), deleted_us BIGINT, self_registered BOOLEAN DEFAULT 1 NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (email_lower)
);

CREATE INDEX ix_operators_origin ON operators (sign_up_origin, created_us);

CREATE TABLE paid_calls (
	id VARCHAR(36) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	service VARCHAR(2048) NOT NULL,
	payee VARCHAR(42) NOT NULL,
	owner VARCHAR(64) NOT NULL,
	site VARCHAR(255) NOT NULL,
	domain VARCHAR(255) NOT NULL,
	network VARCHAR(32) NOT NULL,
	sender VARCHAR(42) NOT NULL,
	wallet VARCHAR(42) NOT NULL,
	amount BIGINT NOT NULL,
	cost BIGINT NOT NULL,
	opened_us BIGINT NOT NULL,
	nonce BIGINT,
	raw TEXT NOT NULL,
	transaction_hash VARCHAR(66) NOT NULL,
	is_filled BOOLEAN NOT NULL,
	tries INTEGER NOT NULL,
	is_proven BOOLEAN NOT NULL,
	taken BIGINT NOT NULL,
	bought TEXT,
	kept_us BIGINT,
	PRIMARY KEY (id)
);

CREATE UNIQUE INDEX ix_paid_calls_nonce ON paid_calls (sender, network, nonce);

CREATE INDEX ix_paid_calls_opened ON paid_calls (opened_us);

CREATE INDEX ix_paid_calls_payee ON paid_calls (payee, opened_us);

CREATE INDEX ix_paid_calls_subject ON paid_calls (subject_key, opened_us);

CREATE TABLE paid_responses (
	payment_id VARCHAR(36) NOT NULL,
	status INTEGER NOT NULL,
	headers TEXT NOT NULL,
	body BLOB NOT NULL,
	stored_us BIGINT NOT NULL, receipt TEXT DEFAULT '' NOT NULL,
	PRIMARY KEY (payment_id),
	FOREIGN KEY(payment_id) REFERENCES payments (id)
);

CREATE INDEX ix_paid_responses_stored ON paid_responses (stored_us);

CREATE TABLE payments (
	id VARCHAR(36) NOT NULL,
	protocol VARCHAR(8) NOT NULL,
	network VARCHAR(32) NOT NULL,
	asset VARCHAR(42) NOT NULL,
	payer VARCHAR(64) NOT NULL,
	nonce VARCHAR(80) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	amount BIGINT NOT NULL,
	pay_to VARCHAR(42) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	request_digest VARCHAR(64) NOT NULL,
	state VARCHAR(10) NOT NULL,
	tx VARCHAR(80) NOT NULL,
	raw_tx TEXT NOT NULL,
	reason TEXT NOT NULL,
	credential TEXT NOT NULL,
	version INTEGER NOT NULL,
	identifier VARCHAR(128),
	expires_us BIGINT NOT NULL,
	lease_us BIGINT NOT NULL,
	created_us BIGINT NOT NULL,
	updated_us BIGINT NOT NULL,
	moves INTEGER NOT NULL, settled_us BIGINT, agent_id VARCHAR(80) DEFAULT '' NOT NULL, fee_token VARCHAR(42) DEFAULT '' NOT NULL, fee_most BIGINT DEFAULT '0' NOT NULL, gas_payer VARCHAR(8) DEFAULT '' NOT NULL, gas_currency VARCHAR(32) DEFAULT '' NOT NULL, gas_reserved BIGINT DEFAULT '0' NOT NULL, gas_spent BIGINT, earlier_tx TEXT DEFAULT '' NOT NULL, look_us BIGINT DEFAULT '0' NOT NULL, questions INTEGER DEFAULT '0' NOT NULL, misses INTEGER DEFAULT '0' NOT NULL, watch_us BIGINT, wrapper_revision INTEGER DEFAULT '1' NOT NULL, idempotency_key VARCHAR(36) DEFAULT '' NOT NULL, fee_rate VARCHAR(32), direct_fee BIGINT DEFAULT '0' NOT NULL, direct_fee_payee VARCHAR(42) DEFAULT '' NOT NULL, is_used BOOLEAN DEFAULT 0 NOT NULL,
	PRIMARY KEY (id)
);

CREATE INDEX ix_payments_digest ON payments (network, digest);

CREATE INDEX ix_payments_ended ON payments (expires_us) WHERE state IN ('released', 'failed') AND watch_us IS NULL AND settled_us IS NULL;

CREATE INDEX ix_payments_operator ON payments (operator_id, created_us);

CREATE INDEX ix_payments_payer ON payments (network, asset, payer, state);

CREATE INDEX ix_payments_revision ON payments (wrapper_id, wrapper_revision) WHERE wrapper_revision > 1;

CREATE INDEX ix_payments_settled ON payments (settled_us) WHERE settled_us IS NOT NULL;

CREATE INDEX ix_payments_state ON payments (state, lease_us);

CREATE UNIQUE INDEX ix_payments_unique ON payments (network, asset, payer, nonce);

CREATE INDEX ix_payments_watch_settled ON payments (network, watch_us) WHERE watch_us IS NOT NULL AND settled_us IS NOT NULL;

CREATE INDEX ix_payments_watch_unpaid ON payments (network, watch_us) WHERE watch_us IS NOT NULL AND settled_us IS NULL;

CREATE TABLE personhood (
	subject_key VARCHAR(200) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	level VARCHAR(32) NOT NULL,
	scope TEXT NOT NULL,
	nullifier VARCHAR(66) NOT NULL,
	verified_us BIGINT NOT NULL,
	PRIMARY KEY (subject_key),
	CONSTRAINT uq_personhood_human UNIQUE (scope, nullifier)
);

CREATE TABLE recovery_codes (
	operator_id VARCHAR(36) NOT NULL,
	code_hash VARCHAR(64) NOT NULL,
	PRIMARY KEY (operator_id, code_hash),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE TABLE removed_calls (
	operator_id VARCHAR(36) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	wrapper_id VARCHAR(36) NOT NULL,
	day INTEGER NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	latency_us BIGINT NOT NULL,
	asked BIGINT NOT NULL,
	denied BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	first_us BIGINT NOT NULL,
	last_us BIGINT NOT NULL,
	PRIMARY KEY (operator_id, agent_id, wrapper_id, day)
)
 WITHOUT ROWID;

CREATE TABLE removed_payments (
	operator_id VARCHAR(36) NOT NULL,
	day INTEGER NOT NULL,
	gas_currency VARCHAR(32) NOT NULL,
	failed BIGINT NOT NULL,
	gas_spent BIGINT NOT NULL,
	PRIMARY KEY (operator_id, day, gas_currency)
)
 WITHOUT ROWID;

CREATE TABLE removed_snapshots (
	subject_key VARCHAR(160) NOT NULL,
	snapshot_hash VARCHAR(66) NOT NULL,
	PRIMARY KEY (subject_key)
);

CREATE TABLE service_credentials (
	id VARCHAR(36) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	owner VARCHAR(64) NOT NULL,
	url VARCHAR(1024) NOT NULL,
	place VARCHAR(8) NOT NULL,
	name VARCHAR(64) NOT NULL,
	sealed BLOB NOT NULL,
	created_us BIGINT NOT NULL,
	used_us BIGINT,
	outcome VARCHAR(12),
	PRIMARY KEY (id),
	CONSTRAINT uq_service_credentials_url UNIQUE (subject_key, url)
);

CREATE INDEX ix_service_credentials_owner ON service_credentials (owner);

CREATE INDEX ix_service_credentials_used ON service_credentials (used_us, created_us);

CREATE TABLE snapshots (
	seq INTEGER NOT NULL,
	id VARCHAR(36) NOT NULL,
	evaluation_id VARCHAR(36) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	snapshot_hash VARCHAR(66) NOT NULL,
	previous_hash VARCHAR(66) NOT NULL,
	encrypted_data_uri TEXT,
	interaction_count INTEGER NOT NULL,
	taken_us BIGINT NOT NULL, evidence_hash VARCHAR(66), record TEXT,
	PRIMARY KEY (seq),
	FOREIGN KEY(evaluation_id) REFERENCES evaluations (id),
	UNIQUE (id)
);

CREATE INDEX ix_snapshots_evaluation ON snapshots (evaluation_id);

CREATE INDEX ix_snapshots_subject ON snapshots (subject_key, seq);

CREATE TABLE state (
	"key" VARCHAR(200) NOT NULL,
	value TEXT NOT NULL,
	expires_us BIGINT NOT NULL,
	PRIMARY KEY ("key")
);

CREATE INDEX ix_state_expires ON state (expires_us);

CREATE TABLE tier_quotes (
	wrapper_id VARCHAR(36) NOT NULL,
	agent VARCHAR(160) NOT NULL,
	revision INTEGER NOT NULL,
	price BIGINT NOT NULL,
	until_us BIGINT NOT NULL,
	PRIMARY KEY (wrapper_id, agent, revision, price)
);

CREATE INDEX ix_tier_quotes_until ON tier_quotes (until_us);

CREATE TABLE transfer_transactions (
	network VARCHAR(32) NOT NULL,
	tx VARCHAR(80) NOT NULL,
	transfer_id VARCHAR(36) NOT NULL,
	raw_tx TEXT NOT NULL,
	fee BIGINT NOT NULL,
	tip BIGINT NOT NULL,
	created_us BIGINT NOT NULL,
	PRIMARY KEY (network, tx),
	FOREIGN KEY(transfer_id) REFERENCES transfers (id)
);

CREATE INDEX ix_transfer_transactions_transfer ON transfer_transactions (transfer_id);

CREATE TABLE transfers (
	id VARCHAR(36) NOT NULL,
	kind VARCHAR(8) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	payment_id VARCHAR(36),
	network VARCHAR(32) NOT NULL,
	asset VARCHAR(42) NOT NULL,
	sender VARCHAR(42) NOT NULL,
	recipient VARCHAR(64) NOT NULL,
	amount BIGINT NOT NULL,
	of_balance BOOLEAN NOT NULL,
	fee_rate VARCHAR(32),
	state VARCHAR(10) NOT NULL,
	nonce BIGINT,
	tx VARCHAR(80) NOT NULL,
	reason TEXT NOT NULL,
	created_us BIGINT NOT NULL,
	updated_us BIGINT NOT NULL,
	check_us BIGINT NOT NULL,
	moves BIGINT NOT NULL,
	PRIMARY KEY (id)
);

CREATE UNIQUE INDEX ix_transfers_nonce ON transfers (network, sender, nonce) WHERE nonce IS NOT NULL;

CREATE INDEX ix_transfers_of ON transfers (payment_id);

CREATE INDEX ix_transfers_operator ON transfers (operator_id, created_us);

CREATE UNIQUE INDEX ix_transfers_payment ON transfers (payment_id) WHERE payment_id IS NOT NULL AND state <> 'cancelled';

CREATE INDEX ix_transfers_state ON transfers (state, check_us);

CREATE TABLE visit_requests (
	kind VARCHAR(8) NOT NULL,
	holder VARCHAR(64) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	created_us BIGINT NOT NULL,
	PRIMARY KEY (kind, holder, subject_key)
);

CREATE INDEX ix_visit_requests_subject ON visit_requests (subject_key);

CREATE TABLE visit_schedule (
	subject_key VARCHAR(160) NOT NULL,
	chain VARCHAR(64) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	host VARCHAR(255) NOT NULL,
	has_control INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	reason VARCHAR(24) NOT NULL,
	due_us BIGINT NOT NULL,
	planned_us BIGINT NOT NULL,
	confirms INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	visited_us BIGINT NOT NULL,
	asked_us BIGINT NOT NULL,
	lease_us BIGINT NOT NULL, quiet_us BIGINT DEFAULT '0' NOT NULL,
	PRIMARY KEY (subject_key)
);

CREATE INDEX ix_visit_schedule_asked ON visit_schedule (rank, asked_us);

CREATE INDEX ix_visit_schedule_due ON visit_schedule (has_control, rank, due_us);

CREATE TABLE visit_seeds (
	commitment VARCHAR(64) NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	at_us BIGINT NOT NULL,
	PRIMARY KEY (commitment)
);

CREATE INDEX ix_visit_seeds_at ON visit_seeds (at_us);

CREATE TABLE visits (
	seq INTEGER NOT NULL,
	subject_key VARCHAR(160) NOT NULL,
	at_us BIGINT NOT NULL,
	timing VARCHAR(10) NOT NULL,
	label VARCHAR(12) NOT NULL,
	rung INTEGER NOT NULL,
	is_critical INTEGER NOT NULL,
	seen TEXT NOT NULL,
	PRIMARY KEY (seq)
);

CREATE INDEX ix_visits_at ON visits (at_us);

CREATE INDEX ix_visits_subject ON visits (subject_key, at_us);

CREATE TABLE webhook_agents (
	webhook_id VARCHAR(36) NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	PRIMARY KEY (webhook_id, agent_id),
	FOREIGN KEY(webhook_id) REFERENCES webhooks (id)
);

CREATE INDEX ix_webhook_agents_agent ON webhook_agents (agent_id, webhook_id);

CREATE TABLE webhook_deliveries (
	seq INTEGER NOT NULL,
	id VARCHAR(36) NOT NULL,
	webhook_id VARCHAR(36) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	url TEXT NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	payload TEXT NOT NULL,
	state VARCHAR(8) NOT NULL,
	status INTEGER,
	reason TEXT,
	created_us BIGINT NOT NULL,
	begun_us BIGINT,
	ended_us BIGINT, domain VARCHAR(255), wait_until_us BIGINT DEFAULT '0' NOT NULL,
	PRIMARY KEY (seq),
	UNIQUE (id)
);

CREATE INDEX ix_webhook_deliveries_domain ON webhook_deliveries (state, domain);

CREATE INDEX ix_webhook_deliveries_operator ON webhook_deliveries (operator_id, seq);

CREATE INDEX ix_webhook_deliveries_state ON webhook_deliveries (state, seq);

CREATE INDEX ix_webhook_deliveries_turn ON webhook_deliveries (state, operator_id, seq, wait_until_us);

CREATE TABLE webhook_events (
	seq INTEGER NOT NULL,
	agent_id VARCHAR(80) NOT NULL,
	bodies TEXT NOT NULL,
	created_us BIGINT NOT NULL,
	after_operator VARCHAR(36) NOT NULL,
	PRIMARY KEY (seq)
);

CREATE TABLE webhooks (
	id VARCHAR(36) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	event VARCHAR(32) NOT NULL,
	url TEXT NOT NULL,
	agent_ids TEXT,
	secret BLOB,
	created_us BIGINT NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE INDEX ix_webhooks_operator ON webhooks (operator_id, created_us);

CREATE TABLE wrapper_conduct (
	address VARCHAR(64) NOT NULL,
	day VARCHAR(10) NOT NULL,
	calls BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	early BIGINT NOT NULL,
	error_run BIGINT NOT NULL,
	PRIMARY KEY (address, day)
);

CREATE INDEX ix_wrapper_conduct_day ON wrapper_conduct (day);

CREATE TABLE wrapper_revisions (
	wrapper_id VARCHAR(36) NOT NULL,
	revision INTEGER NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	path TEXT NOT NULL,
	method VARCHAR(32) NOT NULL,
	price BIGINT NOT NULL,
	description TEXT NOT NULL,
	rate_limit BIGINT,
	target_url TEXT NOT NULL,
	payment_protocol VARCHAR(8) NOT NULL,
	payment_network VARCHAR(32) NOT NULL,
	payout_address VARCHAR(42),
	trust_enabled BOOLEAN NOT NULL,
	min_score FLOAT NOT NULL,
	identity_proof VARCHAR(16) NOT NULL,
	settle VARCHAR(8) NOT NULL,
	max_body_bytes BIGINT NOT NULL,
	timeout_ms INTEGER NOT NULL,
	upstream_auth_header TEXT,
	upstream_auth_secret BLOB,
	active BOOLEAN NOT NULL,
	created_us BIGINT NOT NULL,
	pass_response_headers TEXT DEFAULT '' NOT NULL,
	cors_origins TEXT DEFAULT '' NOT NULL,
	at_us BIGINT NOT NULL,
	until_us BIGINT,
	actor_kind VARCHAR(16) NOT NULL,
	actor_id VARCHAR(36),
	action VARCHAR(32) NOT NULL,
	changes TEXT NOT NULL, cold_start VARCHAR(8), pricing TEXT DEFAULT '[]' NOT NULL, free_calls BIGINT, free_per VARCHAR(5), enforce VARCHAR(8) DEFAULT 'enforce' NOT NULL,
	PRIMARY KEY (wrapper_id, revision),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE INDEX ix_wrapper_revisions_operator ON wrapper_revisions (operator_id);

CREATE INDEX ix_wrapper_revisions_target ON wrapper_revisions (target_url);

CREATE INDEX ix_wrapper_revisions_until ON wrapper_revisions (until_us);

CREATE TABLE wrappers (
	id VARCHAR(36) NOT NULL,
	operator_id VARCHAR(36) NOT NULL,
	path TEXT NOT NULL,
	method VARCHAR(32) NOT NULL,
	route_key TEXT,
	price BIGINT NOT NULL,
	description TEXT NOT NULL,
	rate_limit BIGINT,
	target_url TEXT NOT NULL,
	payment_protocol VARCHAR(8) NOT NULL,
	payment_network VARCHAR(32) NOT NULL,
	payout_address VARCHAR(42),
	trust_enabled BOOLEAN NOT NULL,
	min_score FLOAT NOT NULL,
	identity_proof VARCHAR(16) NOT NULL,
	settle VARCHAR(8) NOT NULL,
	max_body_bytes BIGINT NOT NULL,
	timeout_ms INTEGER NOT NULL,
	upstream_auth_header TEXT,
	upstream_auth_secret BLOB,
	active BOOLEAN NOT NULL,
	created_us BIGINT NOT NULL, pass_response_headers TEXT DEFAULT '' NOT NULL, cors_origins TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '1' NOT NULL, cold_start VARCHAR(8), pricing TEXT DEFAULT '[]' NOT NULL, free_calls BIGINT, free_per VARCHAR(5), enforce VARCHAR(8) DEFAULT 'enforce' NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(operator_id) REFERENCES operators (id)
);

CREATE UNIQUE INDEX ix_wrappers_route ON wrappers (operator_id, route_key);

