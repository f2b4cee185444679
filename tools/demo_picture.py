"""Draws docs/demo.svg: the demo's table, of agents evaluated just now.

./.venv/bin/python tools/demo_picture.py
"""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from assay.cli.demo import GradedAgent, table_of  # noqa: E402 - the checkout's own code


def main() -> None:
    """Run the demo once and draw what it said."""
    command = [str(ROOT / "assay"), "demo", "--once", "--json", "--port", "0"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    graded = [
        GradedAgent(
            agent_id=row["agentId"],
            name=row["name"],
            owner="",
            score=row["score"],
            tier=row["tier"],
            risk_level=row["riskLevel"],
            route=row["route"],
            allow=row["allow"],
            reasons=tuple(row["reasons"]),
            rung=row["rung"],
            rung_name=row["rungName"],
        )
        for row in json.loads(said)
    ]
    console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True)
    console.print(table_of(graded))
    picture = console.export_svg(title="./assay demo", unique_id="assay-demo")
    # The fonts are named by addresses elsewhere; a page must not fetch for showing a picture.
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    picture = "\n".join(line.rstrip() for line in picture.splitlines())
    (ROOT / "docs/demo.svg").write_text(picture + "\n", "utf-8")


if __name__ == "__main__":
    main()
