import pytest

from assay.net.egress.address import BlockReason, classify

BY_REASON = {
    BlockReason.UNSPECIFIED: ["0.0.0.0", "0.1.2.3", "::"],
    BlockReason.LOOPBACK: ["127.0.0.1", "127.255.255.255", "::1"],
    BlockReason.PRIVATE: [
        "10.0.0.0",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.1",
        "fc00::",
        "fdff::1",
    ],
    BlockReason.CGNAT: ["100.64.0.0", "100.127.255.255"],
    BlockReason.LINK_LOCAL: ["169.254.0.1", "fe80::1", "febf:ffff::"],
    BlockReason.METADATA: ["169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"],
    BlockReason.MULTICAST: ["224.0.0.1", "239.255.255.255", "ff02::1"],
    BlockReason.BROADCAST: ["255.255.255.255"],
    BlockReason.DOCUMENTATION: [
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "2001:db8::1",
        "3fff::1",
    ],
    BlockReason.BENCHMARKING: ["198.18.0.0", "198.19.255.255", "2001:2::1"],
    BlockReason.RESERVED: ["240.0.0.1", "192.0.0.1", "2001:10::1", "4000::1", "100::1", "5f00::1"],
    BlockReason.SITE_LOCAL: ["fec0::1", "feff::1"],
    BlockReason.ZONE: ["fe80::1%eth0", "2606:4700::1%1"],
    BlockReason.MAPPED: ["::ffff:8.8.8.8", "::ffff:127.0.0.1"],
    BlockReason.COMPATIBLE: ["::8.8.8.8", "::2"],
    BlockReason.TRANSLATED: ["::ffff:0:8.8.8.8"],
    BlockReason.NAT64: ["64:ff9b::8.8.8.8", "64:ff9b:1::1"],
    BlockReason.SIX_TO_FOUR: ["2002::1", "192.88.99.1"],
    BlockReason.TEREDO: ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    BlockReason.ISATAP: ["2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:8.8.8.8"],
    BlockReason.MALFORMED: ["", "nonsense", "127.1", "1.2.3.4.5", "0x7f000001", "01.2.3.4", "::g"],
}


@pytest.mark.parametrize(
    ("reason", "address"), [(r, a) for r, addresses in BY_REASON.items() for a in addresses]
)
def test_every_class_of_address_is_denied_by_its_name(reason: BlockReason, address: str) -> None:
    denial = classify(address)
    assert denial is not None
    assert denial.reason is reason


def test_every_reason_there_is_has_an_address_that_shows_it() -> None:
    assert set(BY_REASON) == set(BlockReason)


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("::ffff:169.254.169.254", BlockReason.METADATA),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::10.0.0.1", BlockReason.PRIVATE),
        ("2002:7f00:1::", BlockReason.LOOPBACK),
        (
            "2001:0:1:2:3:4:80ff:fffe",
            BlockReason.LOOPBACK,
        ),  # Teredo holds the client's bits inverted
        ("::ffff:0:192.168.0.1", BlockReason.PRIVATE),
        ("2606:4700::5efe:100.64.0.1", BlockReason.CGNAT),
    ],
)
def test_the_ipv4_address_inside_is_unwrapped_and_judged(
    address: str, inside: BlockReason | None
) -> None:
    denial = classify(address)
    assert denial is not None
    assert denial.inside is inside
    assert (inside is None) == (" of an address" not in str(denial))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
        "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888",
        "2003::1", "3ffe:ffff::1",
    ],
)  # fmt: skip
def test_public_addresses_just_outside_a_range_are_dialled(address: str) -> None:
    assert classify(address) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "100.64.0.1", "::1", "fd00::1"])
def test_own_network_is_told_apart(address: str) -> None:
    denial = classify(address)
    assert denial is not None
    assert denial.is_own_network


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fd00:ec2::254", "169.254.1.1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1"],
)
def test_metadata_and_disguises_are_never_own_network(address: str) -> None:
    denial = classify(address)
    assert denial is not None
    assert not denial.is_own_network
