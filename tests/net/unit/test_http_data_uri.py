import base64

import pytest

from assay.registries.documents import DataUriError, read_data_uri

DOCUMENT = '{"name":"ü?>~","x":[1,2]}'.encode()
PLAIN = base64.b64encode(DOCUMENT).decode()


@pytest.mark.parametrize(
    "uri",
    [
        f"data:application/json;base64,{PLAIN}",
        f"DATA:APPLICATION/JSON;BASE64,{PLAIN}",
        f"data:application/json;charset=utf-8;base64,{PLAIN}",
        f"data:application/ld+json;base64,{PLAIN}",
        f"data:text/json;base64,{PLAIN}",
        f"data:;base64,{PLAIN}",
        f"data:application/json;base64,{PLAIN.rstrip('=')}",
        f"data:application/json;base64,{base64.urlsafe_b64encode(DOCUMENT).decode()}",
        f"data:application/json;base64,{PLAIN.replace('+', '%2B').replace('=', '%3D')}",
        f"data:application/json;base64,{PLAIN[:10]}\n {PLAIN[10:]}",
        "data:application/json,%7B%22name%22%3A%22%C3%BC%3F%3E~%22%2C%22x%22%3A%5B1%2C2%5D%7D",
        'data:application/json;utf8,{"name":"ü?>~","x":[1,2]}',
    ],
)
def test_json_is_read_in_every_spelling(uri: str) -> None:
    assert read_data_uri(uri, 1000) == DOCUMENT


@pytest.mark.parametrize(
    "uri",
    [
        "data:", "data:application/json", "data:application/json;base64",
        "data:text/html,<p>", "data:image/png;base64,AAAA", "data:application/jsonx,{}",
        "data:application/json;base64,A", "data:application/json;base64,{}",
        "data:application/json;base64,AA=AA", "data:application/json;base64,\ud800",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_carries_no_json_is_refused_in_a_sentence(uri: str) -> None:
    with pytest.raises(DataUriError, match=r"^the data URI "):
        read_data_uri(uri, 1000)


def test_the_size_is_that_of_the_content_and_exact() -> None:
    fits = base64.b64encode(b"x" * 100).decode()
    more = base64.b64encode(b"x" * 101).decode()
    assert len(read_data_uri(f"data:application/json;base64,{fits}", 100)) == 100
    assert len(read_data_uri("data:application/json," + "%78" * 100, 100)) == 100
    for uri in (f"data:application/json;base64,{more}", "data:application/json," + "x" * 101):
        with pytest.raises(DataUriError, match="larger than 100 bytes"):
            read_data_uri(uri, 100)


def test_a_huge_uri_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(DataUriError, match="larger than 100 bytes"):
        read_data_uri("data:application/json;base64," + "=" * 10_000_000, 100)
