"""Fetches a version of Swagger UI into `src/assay/server/ui/swagger-ui`, for the page /docs.

./.venv/bin/python tools/vendor_docs.py 5.35.0

It needs npm. `vendored.json` records the version, the integrity of npm's archive, and the SHA-256
of every file as it is served. Names of source maps are cut off, so that nothing asks for them.
"""

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src/assay/server/ui/swagger-ui"
PACKAGE = "swagger-ui-dist"
SERVED = ("swagger-ui-bundle.js", "swagger-ui.css")
LICENSES = ("LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt")
_SOURCE_MAP = re.compile(rb"\s*(?://|/\*)# sourceMappingURL=[^\s*]+(?:\s*\*/)?\s*\Z")
_NPM_S = 120


def vendor(version: str) -> None:
    """Write the files of a version, compressed, and what they are."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(  # noqa: S603 - npm checks the version's form
            ["npm", "pack", "--json", f"{PACKAGE}@{version}"],  # noqa: S607 - npm of the path
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_NPM_S,
            check=True,
        )
        [about] = json.loads(packed.stdout)
        archive = Path(folder) / about["filename"]
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if about["integrity"] != f"sha512-{digest}":
            raise SystemExit(f"{archive.name} is not what npm says it is.")
        with tarfile.open(archive) as tar:
            contents = {name: _read(tar, name) for name in (*SERVED, *LICENSES)}
    FOLDER.mkdir(exist_ok=True)
    for name in LICENSES:
        (FOLDER / name).write_bytes(contents[name])
    hashes: dict[str, str] = {}
    for name in SERVED:
        served = _SOURCE_MAP.sub(b"", contents[name])
        hashes[name] = hashlib.sha256(served).hexdigest()
        (FOLDER / f"{name}.gz").write_bytes(gzip.compress(served, 9, mtime=0))
    record = {
        "package": PACKAGE,
        "version": about["version"],
        "integrity": about["integrity"],
        "license": "Apache-2.0",
        "sha256": hashes,
    }
    (FOLDER / "vendored.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(f"package/{name}")
    if file is None:
        raise SystemExit(f"The package has no file {name}.")
    return file.read()


if __name__ == "__main__":
    vendor(sys.argv[1])
