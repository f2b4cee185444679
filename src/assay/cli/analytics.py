"""`assay analytics`: the roll-ups held against the call log."""

import sys

from assay.app import App
from assay.cli.command import FAILED, with_app


def rebuild(*, check: bool) -> int:
    """Compare every roll-up with what it was made from, and mend it unless only checking."""

    async def work(app: App) -> int:
        found = await (app.rollups.differences() if check else app.rollups.rebuild())
        for table, wrong in found.items():
            sys.stdout.write(f"{table}: {'equal' if not wrong else f'{wrong} rows differ'}\n")
        if not any(found.values()):
            sys.stdout.write("every roll-up is what the calls and payments say\n")
            return 0
        sys.stdout.write("run it without --check to mend them\n" if check else "mended\n")
        return FAILED if check else 0

    return with_app(work)
