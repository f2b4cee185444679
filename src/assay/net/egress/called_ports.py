"""The ports that we call at addresses that other parties gave us. Pure."""

from typing import Final

PORT_MAX: Final = 65535

UNPRIVILEGED_PORT = 1024
"""Ports below it, other than 80 and 443, belong to other protocols. Source: RFC 6335, section 6."""

SERVICE_PORTS = frozenset(
    {1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3260, 3306}
    | {3389, 3659, 4045, 4190, 4369, 5060, 5061, 5432, 5433, 5672, 5900, 5901, 5902, 5903, 5984}
    | {5985, 5986, 6000, 6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 7199, 7474}
    | {7687, 8086, 8125, 8300, 8301, 8500, 9042, 9092, 9160, 9200, 9300, 9418, 10080, 10250, 10255}
    | {11211, 15672, 16379, 25672, 26257, 26379, 27017, 27018, 27019, 28015, 28017}
)
"""Databases, queues, caches, cluster and remote-desktop services, which are not public HTTP
endpoints.
Sources: IANA port registry, the Fetch standard's bad ports, egress.md#ports."""

_WEB_PORTS: Final = frozenset({80, 443})


def is_called(port: int) -> bool:
    """Return whether this port may belong to a public HTTP endpoint."""
    if port in _WEB_PORTS:
        return True
    return UNPRIVILEGED_PORT <= port <= PORT_MAX and port not in SERVICE_PORTS
