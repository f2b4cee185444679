"""Unsafe configurations, and safe ones that look like them, by somebody who had not seen the code.

Each line is the recommended configuration of docs/operate.md and what the line says, in a shell's
spelling: `NAME=value` in the environment, `name=value` in the file, `!name` left out of both.
`$A` and the like are values of `VALUES`.
"""

from ipaddress import ip_network

A = "138c3884a68b0eeac7a4f2c5bbdea65d47baf37bdaaa60e0bad3e9abfb17fffe"
K1 = "7325fa2e5c83ad812e61eff11ea30679342a72fcdf9b6de7a604051dd6c08c9c"
SEED = (112, 97, 13, 172, 172, 121, 209, 73, 94, 125, 245, 241, 254, 255, 53, 202)
SEED += (23, 77, 124, 74, 8, 227, 151, 239, 7, 162, 98, 184, 172, 70, 146, 207)
PUBLIC = (166, 88, 177, 63, 161, 90, 42, 46, 64, 34, 126, 138, 56, 169, 23, 63)
PUBLIC += (129, 119, 225, 15, 27, 22, 109, 33, 152, 221, 206, 71, 9, 173, 247, 114)
PUBLIC_OF_ZEROS = (59, 106, 39, 188, 206, 182, 164, 45, 98, 163, 168, 208, 42, 111, 13, 115)
PUBLIC_OF_ZEROS += (101, 50, 21, 119, 29, 226, 67, 166, 58, 192, 72, 161, 139, 89, 218, 41)


def _keypair(numbers: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, numbers))}]"


SOL = _keypair(SEED + PUBLIC)

VALUES = {
    "A": A,
    "B": "dec81a0adba077e7680e63ea2e08763c01de7127cce28e1b3bdbbd7f8bf90367",
    "C": "b713d269b5dfc2e09d3e81fbe07aa7714225e74a740a39fe1cdde7a518b296b1",
    "D": "8f46278c874b51416015449669ced6d4509dcd005d451722b86192f7ebeaf943",
    "K1": K1,
    "K1_CAPITALS": K1.upper(),
    "P1": "0x49B4A4DE69c37d451F326FF86Aa423147956EEdC",
    "P1_CAPITALS": "0x49B4A4DE69C37D451F326FF86AA423147956EEDC",
    "P2": "0x7599c0F447C0b867d3D52ebB55d5722EDAc6994C",
    "SOL": SOL,
    "SOL_ZEROS": _keypair((0,) * 32 + PUBLIC_OF_ZEROS),
    "ANVIL": "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "ANVIL_CAPITALS": "AC0974BEC39A17E36BA4A6B4D238FF944BACB478CBED5EFCAE784D7BF4F2FF80",
    "ONE": "1".zfill(64),
    "ONES": "1" * 64,
    "COUNTED": "0123456789abcdef" * 4,
    "ALL_BUT_ONE": ",".join(
        map(str, ip_network("0.0.0.0/0").address_exclude(ip_network("192.0.2.1/32")))
    ),
    "MAIL": "ASSAY_SMTP_FROM='Assay <no-reply@assay.example.com>'",
    "LOCAL_PG": "ASSAY_DATABASE_URL=postgresql://assay:Zq7-vT2k_mR9@127.0.0.1/assay",
    "PG": "ASSAY_DATABASE_URL=postgresql://assay:Zq7-vT2k_mR9@db.example/assay",
    "EAS": '"chain":"base","eas":"0x4200000000000000000000000000000000000021","schema":"0x'
    + "ab" * 32
    + '","fields":{"tier":"tier"},"sinceBlock":1',
}

RINGS = (
    "ASSAY_JWT_SECRET",
    "ASSAY_SESSION_SECRET",
    "ASSAY_SNAPSHOT_SECRET",
    "ASSAY_SIGNING_SECRET",
    "ASSAY_PAYMENT_SECRET",
    "ASSAY_UPSTREAM_SECRETS",
    "ASSAY_OPS_TOKEN",
)

WEAK = f"""
changeme
secret
assay
x
{"a" * 64}
{"0" * 64}
{"A" * 43}=
{"0123456789abcdef" * 4}
{"deadbeef" * 8}
abcdefghijklmnopqrstuvwxyz0123456789
qwertyuiopasdfghjklzxcvbnm123456
{"changeme" * 4}
{"password" * 4}
correct horse battery staple
your-256-bit-secret
a-string-secret-at-least-256-bits-long
new,old
old,new
new
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
assay.example.com
https://assay.example.com
{" " * 30}
""".strip("\n").split("\n")
"""Item 13: each of them in each of `RINGS`."""

STRONG = f"""
{A}
9f86c1d40b7e4a52a3d85e6617c0b92f
7DFoL95WGReVL_eKeore_9D-vDct0mhxkWxGxjA4G0U=
gravel-ottoman-pixel-thirsty-maple-quorum-unlace-dwindle
password-4kQ9zT_x71mVb2RcY8wLhN0aJe5uGs3D
""".strip().split("\n")

_PROXIES = """
ASSAY_TRUSTED_PROXIES=0.0.0.0/0
ASSAY_TRUSTED_PROXIES=127.0.0.1,::/0
ASSAY_TRUSTED_PROXIES=0.0.0.0/1,128.0.0.0/1
ASSAY_TRUSTED_PROXIES=::/1,8000::/1
ASSAY_TRUSTED_PROXIES=127.0.0.1,::ffff:0:0/96
ASSAY_TRUSTED_PROXIES=::1,2000::/3
ASSAY_TRUSTED_PROXIES=0.0.0.0/2,64.0.0.0/2,128.0.0.0/2,192.0.0.0/2
ASSAY_TRUSTED_PROXIES=127.0.0.1,128.0.0.0/1
ASSAY_TRUSTED_PROXIES=$ALL_BUT_ONE
trusted_proxies=0.0.0.0/1,128.0.0.0/1
"""
_BINDS = """
ASSAY_HOST=0.0.0.0
ASSAY_HOST=::
ASSAY_HOST=0
ASSAY_HOST=0:0:0:0:0:0:0:0
ASSAY_HOST=::ffff:0.0.0.0
ASSAY_HOST=8.8.4.4
ASSAY_OPS_BIND=0.0.0.0:9464 ASSAY_OPS_TOKEN=$A
ASSAY_OPS_BIND=[::]:9464 ASSAY_OPS_TOKEN=$A
ASSAY_OPS_BIND=8.8.4.4:9464 ASSAY_OPS_TOKEN=$A
"""
_NOT_TRUSTED = """
!trusted_proxies ASSAY_TRUSTED_PROXIES=
ASSAY_HOST=127.0.0.1 ASSAY_TRUSTED_PROXIES=203.0.113.7/32
ASSAY_HOST=::1 ASSAY_TRUSTED_PROXIES=127.0.0.1
"""
_PLAIN = """
ASSAY_PUBLIC_URL=http://assay.example.com
ASSAY_PUBLIC_URL=HTTP://assay.example.com
ASSAY_PUBLIC_URL=http://localhost.example.com
ASSAY_PUBLIC_URL=http://127.0.0.1.nip.io
ASSAY_PUBLIC_URL=http://203.0.113.7:8787
"""
_MISSING = """
!public_url
!public_url ASSAY_SMTP_URL=smtps://u:Zq7-vT2k_mR9@mail.example:465 $MAIL
ASSAY_PUBLIC_URL=https://localhost
"""
_PUBLISHED = """
ASSAY_ACCOUNT_URL=http://app.example.com/account
ASSAY_WRAP_URL=http://wrap.example.com
ASSAY_COURSE_ELSEWHERE_URL=http://elsewhere.example.com
ASSAY_UPGRADE_URL=http://shop.example.com/pro
ASSAY_PUBLIC_URL=https://admin:hunter2hunter2@assay.example.com
ASSAY_PUBLIC_URL=https://assay.example.com@evil.example
ASSAY_ACCOUNT_URL=https://admin:hunter2hunter2@assay.example.com
ASSAY_ACCOUNT_URL=https://assay.example.com@evil.example
ASSAY_WRAP_URL=https://admin:hunter2hunter2@assay.example.com
ASSAY_WRAP_URL=https://assay.example.com@evil.example
"""
_WRAP = """
ASSAY_WRAP_URL=https://assay.example.com:443
ASSAY_WRAP_URL=https://Assay.Example.com
ASSAY_WRAP_URL=https://assay.example.com/
ASSAY_WRAP_URL=https://assay.example.com.
"""
_CORS = """
ASSAY_CORS_ORIGINS=null
ASSAY_CORS_ORIGINS=https://app.example.com,null
ASSAY_CORS_ORIGINS=*
ASSAY_CORS_ORIGINS=https://app.example.com,*
ASSAY_CORS_ORIGINS=http://app.example.com
ASSAY_CORS_ORIGINS=https://*.example.com
"""
_OPENED = """
ASSAY_OPEN_ENDPOINTS=wallet,resolve-wallet,snapshot,liveness,trigger-sandbox,trigger-sandbox-key,proxy
ASSAY_OPEN_ENDPOINTS=wallet,resolve-wallet,snapshot,liveness,trigger-sandbox,webhooks
"""
_SIGN_UP = """
ASSAY_SIGN_UP=open ASSAY_X402_PRIVATE_KEY=$K1 !x402_facilitator_url
!sign_up ASSAY_X402_PRIVATE_KEY=$K1 !x402_facilitator_url
ASSAY_SIGN_UP=open ASSAY_SOLANA_KEYPAIR=$SOL
ASSAY_SIGN_UP=open ASSAY_SOLANA_KEYPAIR=$SOL ASSAY_SOLANA_FEEDBACK_ON=every-gate
ASSAY_SIGN_UP=open ASSAY_SOLANA_KEYPAIR=$KEY_FILE
"""
_PASSWORDS = """
$LOCAL_PG ASSAY_STATE_URL=valkeys://:password@cache.example:6379/0
ASSAY_SMTP_URL=smtp://user:password@mail.example:587 $MAIL
"""
_EQUAL = """
ASSAY_JWT_SECRET=$A ASSAY_SESSION_SECRET=$A
ASSAY_SIGNING_SECRET=$A ASSAY_SNAPSHOT_SECRET=$A
ASSAY_JWT_SECRET=$A,$B ASSAY_SESSION_SECRET=$C,$B
ASSAY_PAYMENT_SECRET=$A,$B ASSAY_UPSTREAM_SECRETS=$B
ASSAY_JWT_SECRET=$A 'ASSAY_SESSION_SECRET= $A'
ASSAY_X402_PRIVATE_KEY=$K1 ASSAY_SIGNING_SECRET=$K1
ASSAY_X402_PRIVATE_KEY=0x$K1 ASSAY_SIGNING_SECRET=$K1
ASSAY_X402_PRIVATE_KEY=$K1_CAPITALS ASSAY_SIGNING_SECRET=$K1
ASSAY_DATABASE_URL=postgresql://assay:$A@127.0.0.1/assay ASSAY_JWT_SECRET=$A
$LOCAL_PG ASSAY_STATE_URL=valkeys://:$A@cache.example:6379/0 ASSAY_JWT_SECRET=$A
ASSAY_SMTP_URL=smtps://u:$A@mail.example:465 $MAIL ASSAY_JWT_SECRET=$A
ASSAY_SESSION_SECRET=$DRAWN_JWT
ASSAY_JWT_SECRET=$A ASSAY_OPS_TOKEN=$A
ASSAY_X402_PRIVATE_KEY=$K1 ASSAY_OPS_TOKEN=$K1
ASSAY_OPS_TOKEN=$DRAWN_JWT
"""
_ROTATION = """
ASSAY_JWT_SECRET=$A,$A
ASSAY_SESSION_SECRET=$A,$B,$A
ASSAY_SESSION_SECRET=$A,changeme
ASSAY_JWT_SECRET=$A,
ASSAY_JWT_SECRET=$A,,$B
ASSAY_UPSTREAM_SECRETS=,$A
ASSAY_SIGNING_SECRET=${A}2,$A
"""
_KNOWN_KEYS = """
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=$ANVIL
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=0x$ANVIL
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=$ANVIL_CAPITALS
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=$ONE
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=$ONES
!x402_facilitator_url ASSAY_X402_PRIVATE_KEY=$COUNTED
ASSAY_SOLANA_KEYPAIR=$SOL_ZEROS
"""
_PAYOUT = """
ASSAY_X402_PRIVATE_KEY=$K1 ASSAY_PAYOUT_ADDRESS=$P1
ASSAY_X402_PRIVATE_KEY=$K1 ASSAY_PAYOUT_ADDRESS=$P1_CAPITALS
ASSAY_PAYOUT_ADDRESS=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
ASSAY_PAYOUT_ADDRESS=0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf
ASSAY_PAYOUT_ADDRESS=0x0000000000000000000000000000000000000000
ASSAY_PAYOUT_ADDRESS=0x000000000000000000000000000000000000dEaD
ASSAY_PAYOUT_ADDRESS=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed
"""
_RPC = """
ASSAY_CHAINS='{"base":{"rpc_urls":["http://node.example:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["https://node.example","http://node.example:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://localhost.example:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://127.0.0.1.nip.io:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://127.0.0.1@node.example:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["ws://node.example:8546"]}}'
ASSAY_PAYMENT_RPC='{"eip155:8453":["http://node.example:8545"]}'
ASSAY_PAYMENT_RPC='{"eip155:8453":["ws://node.example:8546"]}'
ASSAY_SOLANA_RPC_URL=http://node.example:8899
ASSAY_SOLANA_INDEXER_URL=http://indexer.example
ASSAY_X402_FACILITATOR_URL=http://facilitator.example.com
"""
_DATABASE = """
$PG
$PG?sslmode=disable
$PG?sslmode=allow
$PG?sslmode=prefer
$PG?sslmode=require
$LOCAL_PG?host=db.example
$LOCAL_PG?hostaddr=203.0.113.9
ASSAY_DATABASE_URL=postgresql://assay@127.0.0.1,db.example/assay
"""
_MAIL = """
ASSAY_SMTP_URL=smtp+plain://mail.example:25 $MAIL
ASSAY_SMTP_URL=smtp+plain://localhost.example:25 $MAIL
"""
_STATE = """
$LOCAL_PG ASSAY_STATE_URL=valkey://:Zq7-vT2k_mR9@cache.example:6379/0
$LOCAL_PG ASSAY_STATE_URL=valkey://cache.example:6379/0
$LOCAL_PG ASSAY_STATE_URL=valkeys://cache.example:6379/0
"""
_LIMITS = """
ASSAY_GUESSES_PER_MINUTE=1000000000
ASSAY_ANONYMOUS_PER_MINUTE=1000000000
ASSAY_SANDBOX_PER_MINUTE=1000000000
ASSAY_SANDBOX_PER_AGENT_MINUTE=1000000000
ASSAY_ACCOUNTS_PER_ADDRESS=1000000 ASSAY_SIGN_UP=open
ASSAY_GATE_EVALUATIONS_PER_HOUR=1000000
ASSAY_QUOTA_RPC_CALLS=1000000000000
ASSAY_QUOTA_EVALUATIONS=1000000000000
ASSAY_QUOTA_UNPROVEN_EVALUATIONS=1000000000000
ASSAY_QUOTA_ROWS=1000000000000
ASSAY_QUOTA_DISK_MIB=1000000000000
ASSAY_QUOTA_ACCOUNT_CHANGES=1000000000000
ASSAY_BODY_BYTES_MAX=1099511627776
ASSAY_HELD_BODIES_MIB=1048576
ASSAY_WRAPPER_UNREAD_MIB=1048576
ASSAY_CONNECTIONS_MAX=10000000
ASSAY_KEYED_PER_MINUTE=1000000000000
ASSAY_GUESSES_PER_MINUTE=0
"""
_CONNECTIONS = """
ASSAY_CONNECTIONS_MAX=500
ASSAY_CONNECTIONS_PER_ADDRESS=2000
ASSAY_CONNECTIONS_PER_NETWORK=5000
"""
_EGRESS = """
ASSAY_EGRESS_PER_MINUTE=1000000000
ASSAY_EGRESS_KIB_PER_MINUTE=1000000000
ASSAY_EGRESS_PER_MINUTE=1000000000 ASSAY_EGRESS_KIB_PER_MINUTE=1000000000
ASSAY_EGRESS_CONSENTING_PER_MINUTE=1000000000 ASSAY_EGRESS_CONSENTING_KIB_PER_MINUTE=1000000000
"""
_RETENTION = """
ASSAY_CALL_DAYS=0
ASSAY_CALL_DAYS=36500
ASSAY_FAILED_LOGIN_DAYS=0
ASSAY_FAILED_LOGIN_DAYS=36500
ASSAY_UNUSED_ACCOUNT_DAYS=0
ASSAY_UNUSED_ACCOUNT_DAYS=36500
ASSAY_UNPROVEN_DAYS=0
ASSAY_UNPROVEN_DAYS=36500
ASSAY_KEY_AGENT_DAYS=0
ASSAY_UNPAID_PAYMENT_DAYS=0
ASSAY_WRAPPER_REVISIONS=0
ASSAY_WRAPPER_REVISIONS=1000000000
ASSAY_SNAPSHOT_BLOCKS_MIB=0
ASSAY_SNAPSHOT_BLOCKS_MIB=1073741824
ASSAY_PAID_RESPONSE_HOURS=0
ASSAY_PAID_RESPONSE_HOURS=87600
ASSAY_MPP_CHALLENGE_S=31536000
ASSAY_UNPROVEN_DAYS=0 ASSAY_QUOTA_UNPROVEN_EVALUATIONS=100000
"""
_STAGING = "ASSAY_WORLD_ID_APP=app_staging_0123456789abcdef0123456789abcdef"
_WORLD_ID = "ASSAY_WORLD_ID_APP=app_0123456789abcdef0123456789abcdef"
_PROOFS = f"""
{_STAGING} ASSAY_WORLD_ID_VERIFIER=cloud
ASSAY_ATTESTATION_SOURCES='[{{$EAS,"attesters":[]}}]'
ASSAY_ATTESTATION_SOURCES='[{{$EAS,"attesters":["0x0000000000000000000000000000000000000000"]}}]'
"""
_TIERS = """
ASSAY_TIERS='[[0,"AAA","GREEN","prod"]]'
"""
_IPFS = f"""
ASSAY_IPFS_GATEWAY=http://gateway.example
ASSAY_SNAPSHOT_STORE=ipfs ASSAY_IPFS_API=http://ipfs.example:5001
{_WORLD_ID} ASSAY_WORLD_ID_VERIFIER=cloud ASSAY_WORLD_ID_API=http://developer.example
ASSAY_ARWEAVE_GATEWAY=http://gateway.example
ASSAY_JUDGE_URL=http://judge.example/v1
"""
_LEASES = """
ASSAY_SETTLEMENT_S=60
ASSAY_SETTLEMENT_LEASE_S=5
ASSAY_GATE_EVALUATION_S=3600
ASSAY_SANDBOX_EVALUATION_S=3600
"""
_TEST_NETWORKS = """
ASSAY_CONTRACT_WALLET_CHAINS=ethereum-sepolia,ethereum
ASSAY_SELF_REGISTRY=celo-sepolia:0xaC3DF9ABf80d0F5c020C06B04Cced27763355944
ASSAY_WORLD_ID_ROUTER=ethereum-sepolia:0x163b09b4FE21177c455D850BD815B6D583732432
ASSAY_SOLANA_KEYPAIR=$SOL ASSAY_SOLANA_PRIORITY_MICROLAMPORTS=1000000000000
"""

_OPENED_UPSTREAMS = """
ASSAY_UPSTREAM_ALLOW=0.0.0.0/0
ASSAY_UPSTREAM_ALLOW=::/0
ASSAY_UPSTREAM_ALLOW=10.0.0.0/8
ASSAY_UPSTREAM_ALLOW=10.0.3.0/24,172.16.0.0/12:8443
ASSAY_UPSTREAM_ALLOW=10.0.0.0/16,10.1.0.0/16,10.2.0.0/16,10.3.0.0/16,10.4.0.0/16
ASSAY_UPSTREAM_ALLOW=fc00::/7
ASSAY_UPSTREAM_ALLOW=127.0.0.1
ASSAY_UPSTREAM_ALLOW=127.0.0.0/8
ASSAY_UPSTREAM_ALLOW=::1
ASSAY_UPSTREAM_ALLOW=localhost
ASSAY_UPSTREAM_ALLOW=127.0.0.1:8787
ASSAY_UPSTREAM_ALLOW=localhost:8787
ASSAY_UPSTREAM_ALLOW=[::1]:8787
ASSAY_UPSTREAM_ALLOW=127.0.0.1:9464 ASSAY_OPS_BIND=9464
ASSAY_UPSTREAM_ALLOW=localhost:9464 ASSAY_OPS_BIND=127.0.0.2:9464
ASSAY_UPSTREAM_ALLOW=127.0.0.1:9464 ASSAY_OPS_BIND=9464 ASSAY_OPS_TOKEN=$A
ASSAY_UPSTREAM_ALLOW=10.0.3.0/24:9464 ASSAY_OPS_BIND=10.0.3.5:9464 ASSAY_OPS_TOKEN=$A
ASSAY_UPSTREAM_ALLOW=10.0.3.7:8787 ASSAY_HOST=10.0.3.7 ASSAY_TRUSTED_PROXIES=10.0.3.1/32
ASSAY_UPSTREAM_ALLOW=169.254.169.254
ASSAY_UPSTREAM_ALLOW=[fd00:ec2::254]:80
ASSAY_UPSTREAM_ALLOW=169.254.1.1
ASSAY_UPSTREAM_ALLOW=10.0.3.7:5432
ASSAY_UPSTREAM_ALLOW=api.internal:22
ASSAY_UPSTREAM_ALLOW=8.8.8.8
upstream_allow=10.0.0.0/8
"""

UNSAFE: dict[int, tuple[str, str]] = {
    1: ("trusted-proxies", _PROXIES),
    2: ("open-bind", _BINDS),
    3: ("proxy-not-trusted", _NOT_TRUSTED),
    4: ("public-url-plain", _PLAIN),
    5: ("public-url-missing", _MISSING),
    6: ("published-url", _PUBLISHED),
    7: ("wrap-origin", _WRAP),
    8: ("cors-origins", _CORS),
    9: ("identity-asserted", "ASSAY_IDENTITY_PROOF=asserted"),
    10: (
        "private-upstreams",
        "ASSAY_ALLOW_PRIVATE_UPSTREAMS=1\nASSAY_ALLOW_PRIVATE_UPSTREAMS=true",
    ),
    11: ("stranger-write-back", _OPENED + "ASSAY_SOLANA_KEYPAIR=$SOL"),
    12: ("open-sign-up", _SIGN_UP),
    13: (
        "weak-secret",
        _PASSWORDS + "\n".join(f"'{ring}={weak}'" for weak in WEAK for ring in RINGS),
    ),
    14: ("equal-secrets", _EQUAL),
    15: ("equal-secrets", _ROTATION),
    16: ("known-key", _KNOWN_KEYS),
    17: ("payout-address", _PAYOUT),
    18: ("plain-http-service", _RPC),
    19: ("database-plain", _DATABASE),
    20: ("mail-plain", _MAIL),
    32: ("upstream-allow", _OPENED_UPSTREAMS),
    21: ("state-plain", _STATE),
    22: ("limits-lifted", _LIMITS),
    122: ("connection-caps", _CONNECTIONS),
    23: ("egress-budget", _EGRESS),
    24: ("retention", _RETENTION),
    27: ("forgeable-proofs", _PROOFS),
    127: ("open-tiers", _TIERS),
    28: ("plain-http-service", _IPFS),
    29: ("settlement-lease", _LEASES),
    30: ("test-network", _TEST_NETWORKS),
}
"""Item of the list (122, 127: the second halves of 22 and 27): the finding, and its cases."""

SAFE: dict[int, str] = {
    1: """
ASSAY_TRUSTED_PROXIES=127.0.0.1,::1,203.0.113.7/32
ASSAY_TRUSTED_PROXIES=::ffff:127.0.0.1/128
ASSAY_TRUSTED_PROXIES=127.0.0.0/8
ASSAY_TRUSTED_PROXIES=127.0.0.1,104.16.0.0/13,172.64.0.0/13,2606:4700::/32,2400:cb00::/32
""",
    2: """
ASSAY_HOST=127.0.0.1
ASSAY_HOST=::1
ASSAY_HOST=localhost
ASSAY_HOST=127.0.0.2
ASSAY_HOST=10.0.3.5 ASSAY_TRUSTED_PROXIES=10.0.3.7/32
ASSAY_OPS_BIND=9464
ASSAY_OPS_BIND=[::1]:9464
ASSAY_OPS_BIND=10.0.3.5:9464 ASSAY_OPS_TOKEN=$A
""",
    3: """
ASSAY_LOG_FORMAT=json
ASSAY_PUBLIC_URL= !public_url !trusted_proxies
ASSAY_PUBLIC_URL=http://127.0.0.1:8787 !trusted_proxies
ASSAY_HOST=::1 ASSAY_TRUSTED_PROXIES=::1
ASSAY_HOST=127.0.0.1 ASSAY_TRUSTED_PROXIES=127.0.0.0/8
""",
    4: """
ASSAY_PUBLIC_URL=http://127.0.0.1:8787 !trusted_proxies
ASSAY_PUBLIC_URL=http://[::1]:8787 !trusted_proxies
ASSAY_PUBLIC_URL=http://localhost:8787 !trusted_proxies
ASSAY_PUBLIC_URL=https://assay.example.com/
ASSAY_PUBLIC_URL=https://assay.example.com:8443
""",
    5: "!public_url !trusted_proxies\nASSAY_PUBLIC_URL=https://assay.example.com",
    6: """
ASSAY_ACCOUNT_URL=https://app.example.com/account
ASSAY_WRAP_URL=https://wrap.example.com
ASSAY_UPGRADE_URL=https://shop.example.com/@assay
ASSAY_SMTP_URL=smtps://u:Zq7-vT2k_mR9@mail.example:465 $MAIL
""",
    7: "ASSAY_WRAP_URL=https://wrap.example.com\nASSAY_WRAP_URL=https://assay.example.org",
    8: """
ASSAY_CORS_ORIGINS=https://app.example.com,https://admin.example.com
ASSAY_CORS_ORIGINS=https://app.example.com:8443
ASSAY_CORS_ORIGINS=https://null.example.com
""",
    9: "ASSAY_IDENTITY_PROOF=required",
    10: """
ASSAY_ALLOW_PRIVATE_UPSTREAMS=0
ASSAY_ALLOW_PRIVATE_UPSTREAMS=false
ASSAY_EGRESS_BUDGET_PRIVATE=1
""",
    11: """
ASSAY_OPEN_ENDPOINTS=wallet,resolve-wallet,snapshot,liveness,trigger-sandbox,trigger-sandbox-key
ASSAY_OPEN_ENDPOINTS=wallet,snapshot
ASSAY_OPEN_ENDPOINTS=
ASSAY_SOLANA_CLUSTER=devnet ASSAY_SOLANA_KEYPAIR=$SOL
""",
    12: """
ASSAY_SIGN_UP=invite x402_private_key=$K1 ASSAY_ACCOUNTS_PER_ADDRESS=1000000
ASSAY_SIGN_UP=open
ASSAY_SIGN_UP=invite x402_private_key=$K1
ASSAY_SIGN_UP=closed x402_private_key=$K1
ASSAY_SIGN_UP=closed x402_private_key=$K1 !x402_facilitator_url
ASSAY_SIGN_UP=open !x402_facilitator_url !payout_address
ASSAY_SIGN_UP=open ASSAY_SOLANA_CLUSTER=devnet ASSAY_SOLANA_KEYPAIR=$SOL
""",
    13: "\n".join(f"'{ring}={strong}'" for strong in STRONG for ring in RINGS),
    14: """
ASSAY_JWT_SECRET=$A ASSAY_SESSION_SECRET=$B ASSAY_SNAPSHOT_SECRET=$C ASSAY_SIGNING_SECRET=$D
ASSAY_JWT_SECRET=prod-jwt-$A ASSAY_SESSION_SECRET=prod-session-$B
$LOCAL_PG ASSAY_STATE_URL=valkeys://:Zq7-vT2k_mR9@cache.example:6379/0
""",
    15: """
ASSAY_JWT_SECRET=$A,$B
ASSAY_JWT_SECRET=$B,$A
ASSAY_SNAPSHOT_SECRET=$A,$B,$C,$D
ASSAY_UPSTREAM_SECRETS=$A,$B
""",
    16: """
!x402_facilitator_url x402_private_key=$K1
solana_keypair=$SOL ASSAY_OPEN_ENDPOINTS=wallet
x402_private_key=7325fa2e5c83ad812e61ef0000000679342a72fcdf9b6de7a604051dd6c08c9c
""",
    17: """
x402_private_key=$K1 ASSAY_PAYOUT_ADDRESS=$P2 ASSAY_SIGN_UP=invite
x402_private_key=$K1 ASSAY_PAYOUT_ADDRESS=$P2 ASSAY_SIGN_UP=invite !x402_facilitator_url
!payout_address
""",
    18: """
ASSAY_CHAINS='{"base":{"rpc_urls":["http://127.0.0.1:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://[::1]:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://localhost:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["http://127.0.0.2:8545"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["https://node.example/v2/key"]}}'
ASSAY_CHAINS='{"base":{"rpc_urls":["https://user:key@node.example"]}}'
ASSAY_X402_FACILITATOR_URL=http://127.0.0.1:4021
ASSAY_SOLANA_INDEXER_URL=
""",
    19: """
$PG?sslmode=verify-full
$PG?sslmode=verify-ca
$LOCAL_PG
ASSAY_DATABASE_URL=postgresql://assay:Zq7-vT2k_mR9@localhost/assay
ASSAY_DATABASE_URL=postgresql://assay:Zq7-vT2k_mR9@[::1]/assay
ASSAY_DATABASE_URL=postgresql:///assay?host=/var/run/postgresql
""",
    20: """
ASSAY_SMTP_URL=smtp+plain://127.0.0.1:25 $MAIL
ASSAY_SMTP_URL=smtp+plain://localhost:25 $MAIL
ASSAY_SMTP_URL=smtp+plain://[::1]:25 $MAIL
ASSAY_SMTP_URL=smtp://u:Zq7-vT2k_mR9@mail.example:587 $MAIL
ASSAY_SMTP_URL=smtps://u:Zq7-vT2k_mR9@mail.example:465 $MAIL
""",
    21: """
$LOCAL_PG ASSAY_STATE_URL=valkeys://:Zq7-vT2k_mR9@cache.example:6379/0
$LOCAL_PG ASSAY_STATE_URL=valkey://127.0.0.1:6379/0
$LOCAL_PG ASSAY_STATE_URL=valkey://:Zq7-vT2k_mR9@localhost:6379/0
$LOCAL_PG
""",
    22: """
ASSAY_ANONYMOUS_PER_MINUTE=1200
ASSAY_QUOTA_RPC_CALLS=1000000
ASSAY_BODY_BYTES_MAX=10485760
ASSAY_HELD_BODIES_MIB=1024
ASSAY_CONNECTIONS_MAX=1000 ASSAY_CONNECTIONS_PER_ADDRESS=100 ASSAY_CONNECTIONS_PER_NETWORK=400
ASSAY_SANDBOX_PER_AGENT_MINUTE=100
ASSAY_GUESSES_PER_MINUTE=6
ASSAY_CONNECTIONS_PER_ADDRESS=64
ASSAY_ACCOUNTS_PER_ADDRESS=1000000 ASSAY_SIGN_UP=closed
""",
    23: """
ASSAY_EGRESS_PER_MINUTE=120 ASSAY_EGRESS_KIB_PER_MINUTE=1024
ASSAY_EGRESS_PER_MINUTE=6 ASSAY_EGRESS_KIB_PER_MINUTE=64
ASSAY_EGRESS_CONSENTING_PER_MINUTE=6000
ASSAY_EGRESS_BUDGET_PRIVATE=1
""",
    24: """
ASSAY_CALL_DAYS=730
ASSAY_FAILED_LOGIN_DAYS=365
ASSAY_UNUSED_ACCOUNT_DAYS=30
ASSAY_UNPROVEN_DAYS=30
ASSAY_KEY_AGENT_DAYS=730
ASSAY_SNAPSHOT_BLOCKS_MIB=51200
ASSAY_SNAPSHOT_BLOCKS_MIB=0 ASSAY_SNAPSHOT_STORE=ipfs
ASSAY_PAID_RESPONSE_HOURS=72
ASSAY_MPP_CHALLENGE_S=600
""",
    27: f"""
{_WORLD_ID}
{_WORLD_ID} ASSAY_WORLD_ID_API=http://developer.example
ASSAY_ATTESTATION_SOURCES='[{{$EAS,"attesters":["$P2"]}}]'
ASSAY_TIERS='[[90,"AAA","GREEN","prod"],[45,"BA","YELLOW","sandbox"],[0,"C","RED","sandbox_only"]]'
ASSAY_SELF_REGISTRY=
""",
    28: """
ASSAY_IPFS_API=http://ipfs.example:5001
ASSAY_SNAPSHOT_STORE=ipfs ASSAY_IPFS_API=http://127.0.0.1:5001
ASSAY_IPFS_GATEWAY=https://ipfs.io
ASSAY_IPFS_GATEWAY=
ASSAY_IPFS_GATEWAY=http://127.0.0.1:8080
""",
    29: """
ASSAY_SETTLEMENT_S=30 ASSAY_SETTLEMENT_LEASE_S=90
ASSAY_SETTLEMENT_S=10
ASSAY_SANDBOX_EVALUATION_S=40
""",
    30: """
ASSAY_CONTRACT_WALLET_CHAINS=ethereum,base
ASSAY_DEFAULT_CHAIN=base
ASSAY_SOLANA_CLUSTER=devnet ASSAY_SOLANA_KEYPAIR=$SOL
ASSAY_SOLANA_PRIORITY_MICROLAMPORTS=50000
""",
    32: """
ASSAY_UPSTREAM_ALLOW=10.0.3.0/24,api.internal:8443
ASSAY_UPSTREAM_ALLOW=10.0.0.0/16,10.1.0.0/16
ASSAY_UPSTREAM_ALLOW=fd12:3456:789a::/48,[fd12::7]:8443
ASSAY_UPSTREAM_ALLOW=127.0.0.1:3000,localhost:3000,[::1]:3000
ASSAY_UPSTREAM_ALLOW=127.0.0.1:9465 ASSAY_OPS_BIND=9464
ASSAY_UPSTREAM_ALLOW=10.0.3.0/24:9464 ASSAY_OPS_BIND=9464
ASSAY_UPSTREAM_ALLOW=10.0.3.8:8787 ASSAY_HOST=10.0.3.7 ASSAY_TRUSTED_PROXIES=10.0.3.1/32
ASSAY_UPSTREAM_ALLOW=api.internal
upstream_allow=192.168.7.0/24:8080
ASSAY_UPSTREAM_ALLOW_OPERATORS=01a200ad-7c1e-7000-8000-0123456789ab
""",
    31: "ASSAY_ADMIN_TOTP=optional\nASSAY_LOG_LEVEL=debug\nASSAY_LOG_FORMAT=console",
}
"""Item of the list (31: what must not be reported besides): its near misses."""
