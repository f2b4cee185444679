"""Private keys of secp256k1, drawn once and kept in a file that its owner alone can read."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from coincurve import PrivateKey


def make_key(path: Path) -> bool:
    """Draw a key into a new file of mode 0600, as 64 hex digits; False where a file is there.

    Whoever reads the file finds the whole key or no file. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(PrivateKey().to_hex() + "\n")
        out.flush()
        os.fsync(out.fileno())  # money may be sent to its address the next moment
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
            return True
        return False
    finally:
        temporary.unlink()
