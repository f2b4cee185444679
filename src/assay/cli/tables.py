"""Tables in the terminal: one line a row, and nothing in it is cut or broken."""

import sys
from collections.abc import Mapping, Sequence


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """Print columns side by side: ids, addresses and hashes stay whole, to be copied.

    What is wider than the terminal is the terminal's to wrap.
    """
    lines = [columns, *([row[column] for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
