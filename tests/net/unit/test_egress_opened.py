"""`ASSAY_UPSTREAM_ALLOW`: what an entry opens, and what stays shut whatever is written."""

from ipaddress import ip_network

import pytest

from assay.http1.model import Target
from assay.net.egress.address import OpenedAddresses, OpenedEntry, OpenedForOperators, opened_entry
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from tests.vectors.forbidden_hosts import FORBIDDEN

OWN_PORT = 8787


def policy(*entries: str) -> EgressPolicy:
    """Of a named operator, in production."""
    opened = OpenedAddresses(tuple(map(opened_entry, entries)), frozenset({OWN_PORT}))
    return EgressPolicy(opened_for=OpenedForOperators(opened, frozenset({"named"}))).of("named")


def is_dialled(rules: EgressPolicy, url: str, address: str) -> bool:
    """Whether a wrapper of this URL whose host leads to this address connects to it."""
    target = parse_target(url, rules)
    if isinstance(target, RefusedUrl):
        return False
    return rules.refusal(target.scheme, target.host, target.port, address) is None


def is_called(rules: EgressPolicy, url: str) -> bool:
    """The same for a literal address."""
    target = parse_target(url, rules)
    return isinstance(target, Target) and is_dialled(rules, url, target.host)


@pytest.mark.parametrize(
    ("text", "where", "port"),
    [
        ("10.0.3.0/24", ip_network("10.0.3.0/24"), None),
        ("10.0.3.0/24:8443", ip_network("10.0.3.0/24"), 8443),
        ("10.0.3.7", ip_network("10.0.3.7/32"), None),
        ("10.0.3.7:80", ip_network("10.0.3.7/32"), 80),
        ("fd12::/64", ip_network("fd12::/64"), None),
        ("fd12::7", ip_network("fd12::7/128"), None),
        ("[fd12::/64]:8443", ip_network("fd12::/64"), 8443),
        ("[FD12::7]", ip_network("fd12::7/128"), None),
        ("::1", ip_network("::1/128"), None),
        ("API.internal:8443", "api.internal", 8443),
        ("api.internal.", "api.internal", None),
        ("localhost:3000", "localhost", 3000),
        (" a_b-c.lan ", "a_b-c.lan", None),
    ],
)
def test_entries_are_read(text: str, where: object, port: int | None) -> None:
    assert opened_entry(text) == OpenedEntry(where, port)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.3.5/24",
        "10.0.3.0/33",
        "10.0.3",
        "167772935",
        "0xa000307",
        "010.0.3.7",
        "10.0.3.7:",
        "10.0.3.7:0",
        "10.0.3.7:65536",
        "10.0.3.7:80:90",
        "10.0.3.7:http",
        "[fd12::7",
        "[fd12::7]8443",
        "[fd12::7]:",
        "fd12::7/200",
        "fe80::1%eth0",
        "http://10.0.3.7",
        "api.internal/v1",
        "*.internal",
        "user@api.internal",
        "::ffff:10.0.3.7",
        "::ffff:0:0/96",
        "64:ff9b::10.0.3.7",
        "2002:a00:307::1",
        "224.0.0.1",
        "0.0.0.0",
        "::",
        "255.255.255.255",
    ],
)
def test_an_entry_with_two_meanings_or_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        opened_entry(text)


def test_nobody_but_named_operators_has_anything_opened() -> None:
    opened = OpenedAddresses((opened_entry("10.0.3.0/24"),))
    rules = EgressPolicy(opened_for=OpenedForOperators(opened, frozenset({"named"})))
    assert is_called(rules.of("named"), "http://10.0.3.7:8080/")
    for other in (rules, rules.of("other"), rules.of(""), rules.of("Named")):
        assert not is_called(other, "http://10.0.3.7:8080/")
        assert not is_called(other, "https://10.0.3.7/")
        assert other.refusal("https", "api.example.com", 443, "10.0.3.7") is not None


@pytest.mark.parametrize(
    ("entry", "url", "is_open"),
    [
        ("10.0.3.0/24", "http://10.0.3.7/", True),
        ("10.0.3.0/24", "https://10.0.3.7/", True),
        ("10.0.3.0/24", "http://10.0.3.255:8080/v1", True),
        ("10.0.3.0/24", "http://10.0.4.0/", False),
        ("10.0.3.0/24", "http://10.0.2.255/", False),
        ("10.0.3.0/24", "http://167772935/", True),  # 10.0.3.7 as one number
        ("10.0.3.0/24", "http://012.0.3.7/", True),  # in octal, as inet_aton reads it
        ("10.0.3.0/24", "http://0xa.0.0x3.7/", True),
        ("10.0.3.0/24", "http://167773184/", False),  # 10.0.4.0
        ("10.0.3.0/24", "http://[::ffff:10.0.3.7]/", False),
        ("10.0.3.0/24", "http://[64:ff9b::10.0.3.7]/", False),
        ("10.0.3.0/24", "http://[2002:a00:307::1]/", False),
        ("10.0.3.0/24", "http://10.0.3.7:22/", False),
        ("10.0.3.0/24", "http://10.0.3.7:6379/", False),
        ("10.0.3.0/24", f"http://10.0.3.7:{OWN_PORT}/", False),
        ("10.0.3.7:8443", "http://10.0.3.7:8443/", True),
        ("10.0.3.7:8443", "https://10.0.3.7:8443/", True),
        ("10.0.3.7:8443", "http://10.0.3.7:8444/", False),
        ("10.0.3.7:8443", "https://10.0.3.7/", False),
        ("10.0.3.7:9200", "http://10.0.3.7:9200/", True),  # written exactly
        ("10.0.3.7:9200", "http://10.0.3.8:9200/", False),
        ("fd12::/64", "http://[fd12::7]/", True),
        ("fd12::/64", "http://[fd12:0:0:1::7]/", False),
        ("[fd12::7]:8443", "https://[fd12:0:0:0:0:0:0:7]:8443/", True),
        ("[fd12::7]:8443", "https://[fd12::7]/", False),
        ("127.0.0.1:3000", "http://127.0.0.1:3000/", True),
        ("127.0.0.1:3000", "http://127.1:3000/", True),
        ("127.0.0.1:3000", "http://127.0.0.2:3000/", False),
        ("127.0.0.1:3000", "http://127.0.0.1:3001/", False),
        ("127.0.0.1", f"http://127.0.0.1:{OWN_PORT}/", False),
        (f"127.0.0.1:{OWN_PORT}", f"http://127.0.0.1:{OWN_PORT}/", True),
        ("0.0.0.0/0", "http://10.0.3.7/", True),
        ("0.0.0.0/0", "http://169.254.169.254/", False),
        ("0.0.0.0/0", "http://169.254.10.1/", False),
        ("0.0.0.0/0", "http://100.100.100.200/", False),
        ("0.0.0.0/0", "http://168.63.129.16/", False),
        ("0.0.0.0/0", "http://0.0.0.0/", False),
        ("0.0.0.0/0", "http://224.0.0.1/", False),
        ("0.0.0.0/0", "http://8.8.8.8/", False),  # public: https, as everybody else
        ("0.0.0.0/0", "https://8.8.8.8/", True),
        ("0.0.0.0/0", "https://8.8.8.8:6379/", False),
        ("8.8.8.8:6379", "https://8.8.8.8:6379/", False),
        ("::/0", "http://[fd00:ec2::254]/", False),
        ("::/0", "http://[fd12::7]/", True),
        ("169.254.0.0/16", "http://169.254.169.254/", False),
        ("169.254.169.254", "http://169.254.169.254/", True),  # written exactly
        ("169.254.169.254/32:80", "http://169.254.169.254/", True),
        ("[fd00:ec2::254]:80", "http://[fd00:ec2::254]/", True),
        ("fd00:ec2::254", "http://[fd00:ec2::253]/", False),
    ],
)
def test_a_literal_address_is_opened_by_its_network_and_port(
    entry: str,
    url: str,
    is_open: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert is_called(policy(entry), url) is is_open


@pytest.mark.parametrize(
    ("entries", "url", "address", "is_open"),
    [
        # A network counts by the address that is dialled, whatever the name.
        (["10.0.3.0/24"], "http://api.internal:8080/", "10.0.3.7", True),
        (["10.0.3.0/24"], "https://api.example.com/", "10.0.3.7", True),
        (["10.0.3.0/24"], "http://api.internal:8080/", "10.0.4.7", False),
        (["10.0.3.0/24"], "http://api.example.com/", "93.184.216.34", False),  # plain http, public
        (["10.0.3.0/24"], "https://api.example.com/", "93.184.216.34", True),
        (["10.0.3.7:6379"], "https://api.example.com:6379/", "93.184.216.34", False),
        # A name opens ordinary private addresses that it leads to, and no other name does.
        (["api.internal:8443"], "https://api.internal:8443/", "10.9.9.9", True),
        (["api.internal:8443"], "http://API.internal.:8443/", "fd12::7", True),
        (["api.internal:8443"], "https://api.internal/", "10.9.9.9", False),
        (["api.internal:8443"], "https://other.internal:8443/", "10.9.9.9", False),
        (["api.internal:8443"], "https://a.api.internal:8443/", "10.9.9.9", False),
        (["api.internal:8443"], "https://evil.example:8443/", "10.9.9.9", False),
        (["api.internal:8443"], "https://10.9.9.9:8443/", "10.9.9.9", False),
        (["api.internal"], "http://api.internal/", "127.0.0.1", False),
        (["api.internal"], "http://api.internal/", "::1", False),
        (["api.internal"], "http://api.internal/", "169.254.169.254", False),
        (["api.internal"], "http://api.internal/", "169.254.1.1", False),
        (["api.internal"], "http://api.internal/", "fd00:ec2::254", False),
        (["api.internal"], "http://api.internal/", "::ffff:10.0.3.7", False),
        (["api.internal"], "http://api.internal/", "fe80::1%eth0", False),
        (["api.internal"], "http://api.internal/", "nonsense", False),
        (["api.internal", "127.0.0.1:80"], "http://api.internal/", "127.0.0.1", True),
        (["localhost:3000"], "http://localhost:3000/", "127.0.0.1", True),
        (["localhost:3000"], "http://localhost:3000/", "::1", True),
        (["localhost:3000"], "http://localhost:3001/", "127.0.0.1", False),
    ],
)
def test_the_address_that_is_dialled_counts(
    entries: list[str],
    url: str,
    address: str,
    is_open: bool,  # noqa: FBT001 - a column
) -> None:
    assert is_dialled(policy(*entries), url, address) is is_open


@pytest.mark.parametrize("entry", ["10.77.3.7", "10.77.3.0/24:8080", "only.internal", "fd77::/64"])
def test_no_forbidden_spelling_gets_through_beside_an_opened_address(entry: str) -> None:
    """None of them means 10.77.3.7, which is all that is opened."""
    rules = policy(entry)
    for host in FORBIDDEN:
        for url in (f"https://{host}/", f"http://{host}:8080/", f"https://{host}:6379/"):
            target = parse_target(url, rules)
            if isinstance(target, Target):  # a name is decided by where it leads
                assert not target.is_literal_ip, ascii(url)
                assert entry != "only.internal", ascii(url)
