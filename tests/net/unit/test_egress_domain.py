"""Which hosts share a budget."""

import pytest

from assay.net.egress.url import domain_of, network_of


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.c.example.com", "example.com"),
        ("A.Example.COM.", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("one.github.io", "one.github.io"),
        ("deep.one.github.io", "one.github.io"),
        ("bucket.s3.amazonaws.com", "bucket.s3.amazonaws.com"),
        ("github.io", "github.io"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("a.b.unheard-of-suffix", "b.unheard-of-suffix"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
    ],
)
def test_a_host_belongs_to_its_registrable_domain_or_network(host: str, domain: str) -> None:
    assert domain_of(host) == domain


def test_every_name_of_one_owner_is_one_domain() -> None:
    assert {domain_of(f"n{number}.victim.example.org") for number in range(1000)} == {"example.org"}


def test_an_ipv4_address_inside_an_ipv6_one_is_that_address() -> None:
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert network_of("fe80::1%eth0") == "fe80::/64"
    with pytest.raises(ValueError, match="does not appear"):
        network_of("example.com")
