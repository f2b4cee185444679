"""`assay sign`: an agent's answer to a challenge, from the terminal."""

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay.app import address_of_key, sign_message
from assay.cli.command import FAILED, complain


def sign(
    *,
    key_file: Annotated[Path, Parameter(help="File with the private key, 64 hex digits.")],
) -> int:
    """Read the answer of `.../challenge` from standard input, print the body for `.../verify`."""
    try:
        key = key_file.read_text("utf-8").strip()
        challenge = json.load(sys.stdin)["challenge"]
        if not isinstance(challenge, str):
            raise TypeError  # noqa: TRY301 - one sentence serves every shape that is not a challenge
        body = {
            "agentAddress": address_of_key(key),
            "challenge": challenge,
            "signature": sign_message(key, challenge),
        }
    except OSError as error:
        complain(f"cannot read the key: {error}")
        return FAILED
    except (KeyError, TypeError, ValueError):
        complain("give a key of 64 hexadecimal digits, and a challenge as JSON on standard input")
        return FAILED
    sys.stdout.write(json.dumps(body) + "\n")
    return 0
