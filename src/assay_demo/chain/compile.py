"""Compiles the contracts into `artifacts.json`; needs vyper, which only developers have.

./.venv/bin/python -m assay_demo.chain.compile
"""

import json
from pathlib import Path

from vyper.compiler import compile_code
from vyper.compiler.settings import OptimizationLevel, Settings

HERE = Path(__file__).parent
NAMES = ("IdentityRegistry", "ReputationRegistry", "ContractWallet")


def compile_all() -> dict[str, dict[str, object]]:
    """ABI and deployment bytecode of every contract."""
    settings = Settings(optimize=OptimizationLevel.GAS, evm_version="cancun")
    artifacts: dict[str, dict[str, object]] = {}
    for name in NAMES:
        source = (HERE / "contracts" / f"{name}.vy").read_text("utf-8")
        made = compile_code(source, output_formats=["abi", "bytecode"], settings=settings)
        artifacts[name] = {"abi": made["abi"], "bytecode": made["bytecode"]}
    return artifacts


if __name__ == "__main__":
    text = json.dumps(compile_all(), indent=1, sort_keys=True)
    (HERE / "artifacts.json").write_text(text + "\n", "utf-8")
