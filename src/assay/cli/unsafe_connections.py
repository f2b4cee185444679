"""What is unsafe about connections on this machine, whatever the settings say."""

from collections.abc import Iterator

from assay.cli import open_files
from assay.cli.connections_note import read_note
from assay.cli.unsafe_settings import UnsafeSetting
from assay.common.clock import SystemClock
from assay.settings import Settings


def unsafe_connection_limits(settings: Settings) -> Iterator[UnsafeSetting]:
    """An address that held most connections, and a limit of open files that is too low."""
    yield from _connections_kept(settings)
    yield from _too_few(settings)


def _connections_kept(settings: Settings) -> Iterator[UnsafeSetting]:
    """An untrusted address that held over half of all connections in the last 24 hours."""
    said = read_note(settings.data_dir, SystemClock.now())
    if said is not None:
        why = "it may keep others out; if it is your proxy, all callers share its limits"
        do = "name it in ASSAY_TRUSTED_PROXIES if it is your proxy, else block it"
        yield UnsafeSetting("connections", said, why, do)


def _too_few(settings: Settings) -> Iterator[UnsafeSetting]:
    """A limit below which a handful of addresses can keep the others out."""
    files = open_files.reachable()
    most = open_files.fitting(settings, files).connections_max
    if most < min(settings.connections_max, open_files.CONNECTIONS_SAFE):
        what = f"{files} open files are room for {most} connections only"
        why = "a handful of addresses can hold them all, or the database and nodes get none"
        yield UnsafeSetting("open-files", what, why, open_files.ADVICE)
