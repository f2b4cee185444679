"""Contracts that evidence is read from, deployed on the local chain: EAS, Self, World ID."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eth_abi.abi import encode

from assay_demo.chain.registries import Wallet, selector

HERE = Path(__file__).parent / "contracts"
VECTOR: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "world_id.json").read_text("utf-8")
)


@cache
def bytecode(source: str) -> bytes:
    """Compiled by a process of its own: the compiler changes how decimals work where it runs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "contract.vy"
        file.write_text(source, "utf-8")
        run = [
            sys.executable,
            "-m",
            "vyper.cli.vyper_compile",
            "--evm-version",
            "cancun",
            str(file),
        ]
        made = subprocess.run(run, capture_output=True, text=True, check=True)
    return bytes.fromhex(made.stdout.strip().removeprefix("0x"))


def deploy_source(wallet: Wallet, key: str, source: str, arguments: bytes = b"") -> str:
    return wallet.send(key, None, bytecode(source) + arguments)["contractAddress"].lower()


@dataclass(frozen=True)
class Attestations:
    wallet: Wallet
    address: str

    @staticmethod
    def deploy(wallet: Wallet, key: str) -> "Attestations":
        source = (HERE / "Attestations.vy").read_text("utf-8")
        return Attestations(wallet, deploy_source(wallet, key, source))

    def attest(self, key: str, schema: str, recipient: str, data: bytes, expires: int = 0) -> bytes:
        """By whoever has `key`; the uid."""
        types = ["bytes32", "address", "uint64", "bytes"]
        values = [bytes.fromhex(schema[2:]), recipient, expires, data]
        call = selector("attest(bytes32,address,uint64,bytes)") + encode(types, values)
        receipt = self.wallet.send(key, self.address, call)
        return bytes.fromhex(receipt["logs"][0]["data"][2:])[:32]

    def revoke(self, key: str, uid: bytes) -> None:
        self.wallet.send(key, self.address, selector("revoke(bytes32)") + uid)


@dataclass(frozen=True)
class SelfRegistry:
    wallet: Wallet
    address: str
    provider: str

    @staticmethod
    def deploy(wallet: Wallet, key: str) -> "SelfRegistry":
        provider = "0x" + "5e" * 20
        source = (HERE / "SelfRegistry.vy").read_text("utf-8")
        arguments = encode(["address"], [provider])
        return SelfRegistry(wallet, deploy_source(wallet, key, source, arguments), provider)

    def put(
        self, key: str, agent: str, human: int, *, fresh: bool = True, provider: str | None = None
    ) -> None:
        types = ["bytes32", "bool", "address", "uint256"]
        word = bytes.fromhex(agent[2:]).rjust(32, b"\0")
        values = [word, fresh, provider or self.provider, human]
        call = selector("put(bytes32,bool,address,uint256)") + encode(types, values)
        self.wallet.send(key, self.address, call)


def deploy_router(wallet: Wallet, key: str) -> str:
    """A World ID router that knows one root and verifies proofs against the vector's key."""
    return deploy_source(wallet, key, router_source(VECTOR))


def router_source(vector: dict[str, Any]) -> str:
    """The contract, with the verification key written into it."""
    vk = vector["verification_key"]

    def g2(point: Any) -> list[str]:  # imaginary parts first, as the precompile has them (EIP-197)
        return [point[0][1], point[0][0], point[1][1], point[1][0]]

    pairs = [
        *vk["vk_alpha_1"][:2], *g2(vk["vk_beta_2"]), *g2(vk["vk_gamma_2"]), *g2(vk["vk_delta_2"]),
    ]  # fmt: skip
    points = "\n".join(f"    IC[{n}] = [{p[0]}, {p[1]}]" for n, p in enumerate(vk["IC"]))
    return _ROUTER.format(
        root=int(vector["merkle_root"], 16),
        points=points,
        **{f"k{n}": k for n, k in enumerate(pairs)},
    )


_ROUTER = """# pragma version 0.4.3
P: constant(uint256) = 21888242871839275222246405745257275088696311157297823662689037894645226208583

@external
@view
def verifyProof(
    root: uint256, groupId: uint256, signalHash: uint256, nullifierHash: uint256,
    externalNullifierHash: uint256, proof: uint256[8],
):
    if groupId != 1:
        raw_revert(b"\\x72\\x8a\\xde\\x92")
    if root != {root}:
        raw_revert(b"\\xdd\\xae\\x3b\\x71")
    IC: uint256[2][5] = empty(uint256[2][5])
{points}
    inputs: uint256[4] = [root, nullifierHash, signalHash, externalNullifierHash]
    x: uint256[2] = IC[0]
    for i: uint256 in range(4):
        x = ecadd(x, ecmul(IC[i + 1], inputs[i]))
    ok: bool = False
    out: Bytes[32] = b""
    ok, out = raw_call(
        0x0000000000000000000000000000000000000008,
        abi_encode(
            proof[0], (P - proof[1]) % P, proof[2], proof[3], proof[4], proof[5],
            convert({k0}, uint256), convert({k1}, uint256), convert({k2}, uint256),
            convert({k3}, uint256), convert({k4}, uint256), convert({k5}, uint256),
            x[0], x[1], convert({k6}, uint256), convert({k7}, uint256), convert({k8}, uint256),
            convert({k9}, uint256),
            proof[6], proof[7], convert({k10}, uint256), convert({k11}, uint256),
            convert({k12}, uint256), convert({k13}, uint256),
        ),
        max_outsize=32, is_static_call=True, revert_on_failure=False,
    )
    if not ok or convert(convert(out, bytes32), uint256) != 1:
        raw_revert(b"\\x7f\\xcd\\xd1\\xf4")
"""
