"""What stands between strangers and secrets, and small texts of theirs that are read by hand."""

from urllib.parse import quote, quote_from_bytes

from assay.common.errors import InvalidRequest
from assay.net.egress.credentials import Search, may_be_in, percent_decoded
from assay.net.egress.redaction import Redaction
from assay.registries.registration_json import TemplateUri, read_token_uri
from assay.server.schemas import before_of, cursor_after, cursor_at, offset_of
from assay.wrappers.matching import READINGS_MAX, Unfoldable, readings
from assay.wrappers.openapi_operations import operations_of
from assay.wrappers.openapi_text import BadDocument, TextBounds, read_document
from tests.fuzz.target import Target, latin, pieces, text

KEY = b"svc_op_0123456789abcdef0123456789abcdef"
SECRET = "a-secret-of-some-length/with+signs"


def token_uri(data: bytes) -> None:
    """What is read is fetched, or a file: never more than what was given."""
    noted: list[tuple[str, str, str]] = []
    found = read_token_uri(text(data), lambda *one: noted.append(one))
    assert len(found) <= 3 * len(data) + len("ipfs://")
    assert len(noted) <= 2


def list_cursor(data: bytes) -> None:
    """A cursor that is taken is one that is given."""
    cursor = latin(data)
    try:
        place = offset_of(cursor, 0)
    except InvalidRequest:
        last = before_of(cursor, None)
        assert cursor_after(last) == cursor.rstrip("=")
        return
    assert offset_of(cursor_at(place, 1, place + 2), 0) == place + 1 or place >= 100_000


def credential_search(data: bytes) -> None:
    """A key of ours is found whatever stands around it, encoded once or not."""
    cut, around = pieces(data)
    cut = min(cut, len(around))
    around = around.replace(b"%", b"")
    Search(lambda _: False).finds_in(data)
    for spelled in (KEY, quote_from_bytes(KEY).encode(), b"".join(b"%%%02x" % b for b in KEY)):
        value = around[:cut] + spelled + around[cut:]
        assert may_be_in(value)
        assert Search(lambda _: False).finds_in(value)


def percent_signs(data: bytes) -> None:
    """Decoding makes nothing longer, and leaves alone what has no sign."""
    assert len(percent_decoded(data)) <= 2 * len(data)
    plain = data.translate(None, b"%\r\n\0")
    assert percent_decoded(plain) == plain


def redacted(data: bytes) -> None:
    """A secret that is repeated is nowhere in what is kept, as it is or as an address has it."""
    cut, around = pieces(data)
    cut = min(cut, len(around))
    hides = Redaction([SECRET])
    hides.clean(data, is_cut=True)
    hides.text(text(data))
    for spelled in (SECRET, quote(SECRET, safe=""), SECRET.upper()):
        shown = hides.clean(around[:cut] + spelled.encode() + around[cut:])
        assert SECRET.encode() not in shown
        assert spelled.encode() not in shown


def path_readings(data: bytes) -> None:
    """However a path is spelled, its readings are few."""
    assert 0 < len(readings(latin(data))) <= READINGS_MAX


def openapi(data: bytes) -> None:
    """What a wrapper may be made of is printable, and for others only if it is named."""
    document = read_document(text(data), TextBounds(4096, 2000))
    for has_target in (False, True):
        for one in operations_of(document, ["POST /a"], has_target=has_target):
            assert (one.name + one.description + one.problem).isprintable()
            assert one.problem or one.method == "GET" or one.name == "POST /a"


TARGETS = (
    Target("token_uri", token_uri, (TemplateUri,)),
    Target("list_cursor", list_cursor, (InvalidRequest,), 128),
    Target("credential_search", credential_search),
    Target("percent_signs", percent_signs),
    Target("redacted", redacted),
    Target("path_readings", path_readings, (Unfoldable,)),
    Target("openapi", openapi, (BadDocument,)),
)
