"""Runs the unit tests, and fails unless they reach every branch of every pure module.

./assay check pure

Pure modules are those of the contract `pure` in `.importlinter`: `model.py` of each feature, the
rules of grades and of reputation, and the like. Only they are traced, for the sake of time.
"""

import configparser
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pure_modules() -> list[str]:
    """The files of the modules that the contract names, as paths below the checkout."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    named = contracts["importlinter:contract:pure"]["source_modules"].split()
    found = [p for name in named for p in (ROOT / "src").glob(name.replace(".", "/") + ".py")]
    return sorted({p.relative_to(ROOT).as_posix() for p in found})


def main() -> None:
    """Run the tests; ends with the status of pytest."""
    modules = "\n  ".join(pure_modules())
    units = sorted(str(folder) for folder in (ROOT / "tests").glob("**/unit"))
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "coverage.ini"
        settings.write_text(
            f"[run]\nbranch = true\ndata_file = {folder}/data\ninclude =\n  {modules}\n"
            "[report]\nfail_under = 100\nshow_missing = true\nskip_covered = true\n"
            "exclude_also =\n  if TYPE_CHECKING:\n  : +\\.\\.\\.$\n  assert_never\\(\n",
            "utf-8",
        )
        command = [*(sys.executable, "-m", "pytest", "-q"), *sys.argv[1:], *units]
        command += ["--cov", f"--cov-config={settings}", "--cov-report=term-missing:skip-covered"]
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)  # noqa: S603 - our own words


if __name__ == "__main__":
    main()
