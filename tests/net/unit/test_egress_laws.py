from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from assay.http1.model import Target
from assay.net.egress.address import classify
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target

OPEN = EgressPolicy(allow_private=False, require_https=False)
IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)


@given(IPV4)
def test_no_ipv4_address_the_standard_library_calls_private_is_dialled(
    address: IPv4Address,
) -> None:
    if not address.is_global or address.is_multicast:
        assert classify(address) is not None


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_no_ipv6_address_outside_global_unicast_is_dialled(address: IPv6Address) -> None:
    if int(address) >> 125 != 1 or not address.is_global:
        assert classify(address) is not None


@given(IPV4)
def test_text_and_value_of_an_address_are_judged_alike(address: IPv4Address) -> None:
    assert classify(str(address)) == classify(address)


@given(IPV4, st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}", "::ffff:0:{}"]))
def test_no_ipv4_address_gets_through_inside_an_ipv6_one(address: IPv4Address, form: str) -> None:
    assert classify(form.format(address)) is not None


@given(IPV4, st.integers(0, 5))
def test_every_spelling_of_an_ipv4_address_is_judged_as_the_address(
    address: IPv4Address, form: int
) -> None:
    number, (a, b, c, d) = int(address), address.packed
    spelling = (
        f"{number}", f"{number:#x}", f"0{number:o}", f"{a}.{number & 0xFFFFFF}",
        f"{a:#x}.0{b:o}.{c * 256 + d}", f"{a}.{b}.{c:#x}.0{d:o}.",
    )[form]  # fmt: skip
    target = parse_target(f"http://{spelling}/", OPEN)
    if classify(address) is None:
        assert isinstance(target, Target)
        assert target.host == str(address)
    else:
        assert isinstance(target, RefusedUrl)


@given(
    st.text(max_size=60),
    st.sampled_from(["http://{}/", "https://{}", "http://{}@a.example/", "{}"]),
)
def test_any_text_is_read_or_refused_and_what_is_read_is_plain_ascii(text: str, form: str) -> None:
    target = parse_target(form.format(text), OPEN)
    if isinstance(target, Target):
        assert target.host.isascii()
        assert "@" not in target.host
        assert target.path_and_query.isascii()
        assert target.path_and_query.isprintable()
        assert " " not in target.path_and_query
        again = parse_target(f"{target.scheme}://{target.authority}{target.path_and_query}", OPEN)
        assert again == target
