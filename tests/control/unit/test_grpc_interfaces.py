"""Where a card's gRPC interfaces are called, and that control of that is asked for."""

import pytest

from assay.control.statements_in_documents import interfaces_of
from assay.net.egress.url import grpc_origins


@pytest.mark.parametrize(
    ("url", "origins"),
    [
        ("https://a.example/a2a", ["https://a.example"]),
        ("grpcs://a.example:50051", ["https://a.example:50051"]),
        ("http://127.0.0.1:50051", ["http://127.0.0.1:50051"]),
        ("a.example:443", ["https://a.example:443", "http://a.example:443"]),
        ("grpc://a.example", ["https://a.example", "http://a.example"]),
        ("dns:///a.example:50051", ["https://a.example:50051", "http://a.example:50051"]),
        ("[::1]:50051", ["https://[::1]:50051", "http://[::1]:50051"]),
        ("user@a.example", []),
        ("a.example:99999", []),
        ("grpcs:/s://gr", []),
        ("https:8443", []),
        ("dns:grpcs:1", []),
        ("", []),
    ],
)
def test_an_address_is_read_as_grpc_clients_read_it(url: str, origins: list[str]) -> None:
    assert list(grpc_origins(url)) == origins


@pytest.mark.parametrize("url", ["b.example:50051", "grpc://b.example:50051"])
def test_control_is_asked_for_addresses_without_a_scheme_of_the_web(url: str) -> None:
    row = {"url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    assert interfaces_of({"supportedInterfaces": [row]}) == ("http://b.example:50051",)
    old = {"url": url, "preferredTransport": "GRPC"}
    assert interfaces_of(old) == ("http://b.example:50051",)
