# ruff: noqa: E501, RUF001 - tables of look-alike characters, several to a line

import pytest

from assay.http1.model import Target
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from tests.vectors.forbidden_hosts import DENIED_LITERALS, FORBIDDEN, MALFORMED, NAMES

OPEN = EgressPolicy(allow_private=False, require_https=False)
DEVELOPMENT = EgressPolicy(allow_private=True, require_https=False)


def test_the_list_of_forbidden_spellings_is_long_and_has_no_repeats() -> None:
    assert len(set(DENIED_LITERALS)) >= 150
    assert len(set(FORBIDDEN)) == len(FORBIDDEN)


@pytest.mark.parametrize(
    "form", ["https://{}/", "http://{}", "HTTPS://{}:8080/x?y#z", "https://{}?"]
)
def test_no_spelling_of_a_forbidden_host_is_let_through(form: str) -> None:
    for host in FORBIDDEN:
        assert isinstance(parse_target(form.format(host), OPEN), RefusedUrl), ascii(host)


@pytest.mark.parametrize("host", MALFORMED, ids=ascii)
def test_what_is_malformed_stays_refused_in_development(host: str) -> None:
    assert isinstance(parse_target(f"http://{host}/", DEVELOPMENT), RefusedUrl)


@pytest.mark.parametrize("host", NAMES, ids=ascii)
def test_inside_names_are_for_development_only(host: str) -> None:
    assert isinstance(parse_target(f"http://{host}/", DEVELOPMENT), Target)


@pytest.mark.parametrize(
    ("host", "means"),
    [
        ("134744072", "8.8.8.8"), ("0x8080808", "8.8.8.8"), ("010.8.8.8", "8.8.8.8"),
        ("8.8.2056", "8.8.8.8"), ("８.8。8.8", "8.8.8.8"), ("8.8.8.8.", "8.8.8.8"), ("1.1", "1.0.0.1"),
        ("[2606:4700:4700:0:0:0:0:1111]", "2606:4700:4700::1111"),
    ],
)  # fmt: skip
def test_numbers_are_read_as_inet_aton_does_and_kept_in_one_spelling(host: str, means: str) -> None:
    target = parse_target(f"https://{host}/", OPEN)
    assert target == Target("https", means, 443, "/", is_literal_ip=True)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.COM/", "example.com"), ("https://example.com./", "example.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"), ("https://ＥＸＡＭＰＬＥ.com", "example.com"),
        ("https://xn--bcher-kva.example", "xn--bcher-kva.example"), ("https://a_b.example.com", "a_b.example.com"),
        ("https://0x7f.example.com", "0x7f.example.com"), ("https://127.0.0.1.nip.example", "127.0.0.1.nip.example"),
    ],
)  # fmt: skip
def test_names_are_kept_in_one_spelling(url: str, host: str) -> None:
    target = parse_target(url, OPEN)
    assert isinstance(target, Target)
    assert (target.host, target.is_literal_ip) == (host, False)


@pytest.mark.parametrize(
    ("rest", "kept"),
    [
        ("", "/"), ("?a=b", "/?a=b"), ("/a/b?c=d#e", "/a/b?c=d"), ("#top", "/"), ("/a b", "/a%20b"),
        ("/ü", "/%C3%BC"), ("/%41%zz", "/%41%zz"), ("/../x//y", "/../x//y"), ('/"<>', "/%22%3C%3E"),
        ("/\\x", "/%5Cx"), ("/@:8080", "/@:8080"),
    ],
)  # fmt: skip
def test_path_and_query_are_kept_and_made_sendable(rest: str, kept: str) -> None:
    target = parse_target(f"https://example.com{rest}", OPEN)
    assert isinstance(target, Target)
    assert target.path_and_query == kept


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com", "https:example.com", "https:/example.com", "https:\\\\example.com",
        "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)", "data:,x",
        " https://example.com", "https://example.com/\r\nX: y", "https://example.com/\x00", "ws://example.com",
        "https://example.com/\ud800", "https://example.com/" + "a" * 9000, "httpſ://example.com",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_not_a_plain_web_address_is_refused(url: str) -> None:
    assert isinstance(parse_target(url, OPEN), RefusedUrl)


@pytest.mark.parametrize(
    "port",
    [
        "0",
        "1",
        "22",
        "25",
        "53",
        "81",
        "444",
        "1023",
        "1433",
        "2375",
        "3306",
        "3389",
        "5432",
        "6379",
        "9200",
        "10250",
        "11211",
        "27017",
        "65536",
        "99999",
        "-1",
        "+80",
        "80a",
        "８０",
        " 80",
        "0x50",
    ],
)
def test_ports_of_other_services_are_refused(port: str) -> None:
    assert isinstance(parse_target(f"https://example.com:{port}/", OPEN), RefusedUrl)


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8000, 8080, 8443, 8545, 65535])
def test_ports_of_web_servers_are_kept(port: int) -> None:
    target = parse_target(f"https://example.com:{port}/", OPEN)
    assert isinstance(target, Target)
    assert target.port == port


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://example.com/", "example.com"), ("https://example.com:443", "example.com"),
        ("http://example.com:", "example.com"), ("http://example.com:443", "example.com:443"),
        ("https://[2606:4700::1]:8443/", "[2606:4700::1]:8443"), ("http://8.8.8.8:80", "8.8.8.8"),
    ],
)  # fmt: skip
def test_the_host_header_names_the_port_only_when_it_is_another(url: str, authority: str) -> None:
    target = parse_target(url, OPEN)
    assert isinstance(target, Target)
    assert target.authority == authority


def test_plain_http_is_refused_where_https_is_required() -> None:
    assert isinstance(parse_target("http://example.com/", EgressPolicy()), RefusedUrl)
    assert isinstance(parse_target("https://example.com/", EgressPolicy()), Target)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.1", "100.64.0.1", "[::1]", "[fd12::1]", "localhost"]
)
def test_development_reaches_the_own_network(host: str) -> None:
    assert isinstance(parse_target(f"http://{host}:8000/", DEVELOPMENT), Target)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[fe80::1]",
    ],
)
def test_development_does_not_reach_metadata_or_disguises(host: str) -> None:
    assert isinstance(parse_target(f"http://{host}/", DEVELOPMENT), RefusedUrl)


def test_a_refusal_is_a_sentence_that_does_not_repeat_the_credentials() -> None:
    refused = parse_target("https://user:hunter2@example.com/", OPEN)
    assert isinstance(refused, RefusedUrl)
    assert "hunter2" not in refused.why
