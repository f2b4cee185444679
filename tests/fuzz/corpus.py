"""The inputs that are kept: one a line, as a JSON text of one character a byte.

`corpus/<target>.txt` begins the search; `crashes/<target>.txt` once broke the parser.
"""

import json
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
CORPUS, CRASHES = HERE / "corpus", HERE / "crashes"

INPUTS_MAX = 40
BYTES_MAX = 6_000
"""Of one target, so that what is kept stays small."""


def load(folder: Path, name: str) -> list[bytes]:
    """The inputs kept for a target."""
    file = folder / f"{name}.txt"
    lines = file.read_text("ascii").splitlines() if file.exists() else []
    return [json.loads(line).encode("latin-1") for line in lines]


def save(folder: Path, name: str, inputs: Iterable[bytes]) -> None:
    """Keep what is kept already, and of these the shortest, as many as the bounds let."""
    kept = load(folder, name)
    for one in sorted(set(inputs) - set(kept), key=lambda data: (len(data), data)):
        if len(kept) < INPUTS_MAX and sum(map(len, kept)) + len(one) <= BYTES_MAX:
            kept.append(one)
    lines = [json.dumps(one.decode("latin-1")) for one in kept]
    (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), "ascii")
