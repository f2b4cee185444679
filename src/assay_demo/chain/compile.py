"""Compiles the contracts into `artifacts.json`; needs vyper, which only developers have.

./.venv/bin/python -m assay_demo.chain.compile
"""

import json
from pathlib import Path

from vyper.compiler import compile_code
from vyper.compiler.settings import OptimizationLevel, Settings

HERE = Path(__file__).parent
NAMES = ("IdentityRegistry", "ReputationRegistry", "ContractWallet", "TestUSD")


def compile_all() -> dict[str, dict[str, object]]:
    """ABI and deployment bytecode of every contract."""
    settings = Settings(optimize=OptimizationLevel.GAS, evm_version="cancun")
    artifacts: dict[str, dict[str, object]] = {}
    for name in NAMES:
        source = (HERE / "contracts" / f"{name}.vy").read_text("utf-8")
        made = compile_code(
            source, output_formats=["abi", "bytecode", "bytecode_runtime"], settings=settings
        )
        artifacts[name] = {"abi": made["abi"], "bytecode": made["bytecode"]}
        if name == "TestUSD":  # put at the address of the real one, without being deployed
            artifacts[name]["runtime"] = made["bytecode_runtime"]
    return artifacts


if __name__ == "__main__":
    text = json.dumps(compile_all(), indent=1, sort_keys=True)
    (HERE / "artifacts.json").write_text(text + "\n", "utf-8")
