"""Programs of Debian packages: the machine's own, else unpacked below `.tools/`, without root."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".tools" / "debian"
INSTALL_S = 300

_PACKAGES = {
    "nginx": ("nginx",),
    "caddy": ("caddy",),
    "haproxy": ("haproxy", "liblua5.3-0", "libopentracing1", "libopentracing-c-wrapper0"),
    "prometheus": ("prometheus",),
    "promtool": ("prometheus",),
    "systemd-analyze": ("systemd", "libsystemd-shared"),
    "chromium-headless-shell": (
        *("chromium-headless-shell", "chromium-common", "libxnvctrl0", "libdouble-conversion3"),
        *("libogg0", "libflac12", "libharfbuzz-subset0", "libminizip1", "libopenh264-7"),
        *("libopus0", "libasyncns0", "libmp3lame0", "libmpg123-0", "libvorbis0a"),
        *("libvorbisenc2", "libsndfile1", "libpulse0"),
    ),
}
"""By program: its package, and those of its libraries that a small Debian lacks."""

_FOLDERS = {"chromium-headless-shell": "usr/lib/chromium"}
"""Where a program lies whose command is a script with fixed paths."""


@dataclass(frozen=True)
class Program:
    """What to start, and with which libraries."""

    path: str
    libraries: str = ""

    def environment(self) -> dict[str, str]:
        """The process's environment; libraries of unpacked packages are found through it."""
        plain = dict(os.environ)  # noqa: TID251
        return plain | ({"LD_LIBRARY_PATH": self.libraries} if self.libraries else {})


@cache
def program(name: str, *, unpacked: bool = False) -> Program:
    """The program of that name; unpacks its package the first time.

    `unpacked` asks for Debian's own, whatever else of that name is on the path.
    """
    system = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])  # noqa: TID251
    found = shutil.which(name, path=system)
    if found is not None and not unpacked:
        return Program(found)
    folder = TOOLS / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # of several test processes one unpacks
        if not (folder / "unpacked").exists():
            _unpack(name, folder)
            (folder / "unpacked").touch()
    root = folder / "root"
    places = ("usr/lib/*-linux-*", "usr/lib/*-linux-*/pulseaudio", "*/systemd")
    found_in = [path for place in places for path in root.glob(place)]
    libraries = os.pathsep.join(str(path) for path in sorted(found_in))
    own_folder = _FOLDERS.get(name, "**/*bin")
    [own] = [path for path in root.glob(f"{own_folder}/{name}") if path.is_file()]
    return Program(str(own), libraries)


def _unpack(name: str, folder: Path) -> None:
    """`apt-get download` checks the archive's signatures; nothing of the package is run."""
    packages = _PACKAGES[name]
    own = [
        *("-o", f"Dir::State::lists={folder / 'lists'}"),
        *("-o", f"Dir::Cache={folder / 'cache'}"),
        *("-o", "Debug::NoLocking=1"),
    ]
    said = _run(folder, "apt-get", "download", *packages)
    if said:
        (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        (folder / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        said = _run(folder, "apt-get", *own, "update") or _run(
            folder, "apt-get", *own, "download", *packages
        )
    assert not said, f"{name} is not installed and cannot be downloaded: {said}"
    for package in sorted(folder.glob("*.deb")):
        said = _run(folder, "dpkg", "-x", package.name, "root")
        assert not said, said


def _run(folder: Path, *command: str) -> str:
    """What it said if it failed, else nothing."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    return (
        "" if done.returncode == 0 else f"{' '.join(command)}: {done.stdout}{done.stderr}"[-2000:]
    )
