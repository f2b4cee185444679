"""What a test starts is waited for until it is ready or has ended, however busy the machine."""

import subprocess

HUNG_S = 300
"""Whatever is neither by then will never be: a bound, so that a fault ends the suite."""


def listening_at(anvil: "subprocess.Popen[str]") -> str:
    """The URL of a local chain that was started with its output to us, once it listens."""
    assert anvil.stdout is not None
    said = ""
    for line in anvil.stdout:
        said += line
        if "Listening on" in line:
            return "http://" + line.split()[-1]
    raise AssertionError(f"anvil ended before it listened: {said}")
