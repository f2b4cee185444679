import pytest
from eth_abi.abi import encode

from assay.chains.evm.abi import AbiReader, BadAnswer, word
from assay.chains.rpc import ContractCall
from assay.registries import erc8004
from assay.registries.model import Feedback
from tests.support.fakes.chain import feedback, wallet

REGISTRY = wallet(9)
MAX, TYPES = (
    2**256 - 1,
    ["address[]", "uint64[]", "int128[]", "uint8[]", "bytes[]", "bytes[]", "bool[]"],
)


def columns(**changed: object) -> bytes:
    good = {
        "clients": [wallet(1)],
        "indexes": [1],
        "values": [90],
        "decimals": [0],
        "tag1": [b"starred"],
        "tag2": [b""],
        "revoked": [False],
    }
    return encode(TYPES, list((good | changed).values()))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (erc8004.owner_of(REGISTRY, str(MAX)), "6352211e" + encode(["uint256"], [MAX]).hex()),
        (erc8004.token_uri(REGISTRY, "0"), "c87b56dd" + encode(["uint256"], [0]).hex()),
        (erc8004.agent_wallet(REGISTRY, "7"), "00339509" + encode(["uint256"], [7]).hex()),
        (erc8004.clients(REGISTRY, "7"), "42dd519c" + encode(["uint256"], [7]).hex()),
        (erc8004.version(REGISTRY), "0d8e6e2c"),
        (erc8004.identity_registry(REGISTRY), "bc4d861b"),
    ],
)
def test_calls_are_encoded_as_the_reference_codec_does(call: ContractCall, expected: str) -> None:
    assert call.to == REGISTRY
    assert call.data.hex() == expected


@pytest.mark.parametrize("count", [0, 1, 40])
def test_the_feedback_call_is_encoded_as_the_reference_codec_does(count: int) -> None:
    of = [wallet(n + 1) for n in range(count)]
    types = ["uint256", "address[]", "string", "string", "bool"]
    expected = encode(types, [22, of, "", "", False])
    assert erc8004.all_feedback(REGISTRY, "22", of).data == bytes.fromhex("d9d84224") + expected


@pytest.mark.parametrize("length", [0, 1, 32, 65, 8192])
def test_a_signature_question_is_encoded_as_the_reference_codec_does(length: int) -> None:
    digest, signature = b"d" * 32, b"s" * length
    expected = encode(["bytes32", "bytes"], [digest, signature])
    call = erc8004.valid_signature(REGISTRY, digest, signature)
    assert call.data == bytes.fromhex("1626ba7e") + expected


def test_only_the_magic_value_alone_in_its_word_is_a_yes() -> None:
    magic = bytes.fromhex("1626ba7e")
    assert erc8004.says_valid(magic + bytes(28))
    assert not erc8004.says_valid(magic)
    assert not erc8004.says_valid(b"")
    assert not erc8004.says_valid(bytes(28) + magic)
    assert not erc8004.says_valid(magic + b"digest of what was asked".ljust(28))


def test_addresses_come_in_lower_case_and_zero_is_nobody() -> None:
    assert erc8004.read_address(encode(["address"], ["0x" + "Ab" * 20])) == "0x" + "ab" * 20
    assert erc8004.read_address(bytes(32)) is None
    assert erc8004.read_addresses(encode(["address[]"], [[wallet(1), wallet(2)]])) == (
        wallet(1),
        wallet(2),
    )


@pytest.mark.parametrize("data", [b"", bytes(31), b"\xff" * 32, word(2**160)])
def test_what_is_no_address_is_not_taken_for_one(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        erc8004.read_address(data)


def test_text_that_is_no_utf8_is_shown_with_replacements() -> None:
    assert erc8004.read_text(encode(["bytes"], [b"a\xffb"])) == "a\ufffdb"


@pytest.mark.parametrize(
    ("value", "decimals", "expected"),
    [
        (10**38, 0, "1E+38"),
        (-(10**38), 18, "-100000000000000000000.000000000000000000"),
        (9977, 2, "99.77"),
        (-1, 18, "-1E-18"),
        (0, 18, "0E-18"),
        (10**38 - 1, 18, "99999999999999999999.999999999999999999"),
    ],
)
def test_values_are_exact_to_the_ends_of_what_the_registry_takes(
    value: int, decimals: int, expected: str
) -> None:
    (found,) = erc8004.read_feedback(columns(values=[value], decimals=[decimals]))
    assert str(found.value) == expected or found.value.compare(type(found.value)(expected)) == 0
    assert found.decimals == decimals


@pytest.mark.parametrize(
    "changed",
    [
        {"decimals": [19]},
        {"decimals": [255]},
        {"values": [10**38 + 1]},
        {"values": [-(2**127)]},
        {"values": [2**127 - 1]},
        {"values": []},
        {"tag2": [b"", b""]},
    ],
)
def test_what_the_registry_would_not_store_is_not_believed(changed: dict[str, object]) -> None:
    with pytest.raises(BadAnswer):
        erc8004.read_feedback(columns(**changed))


def test_entries_keep_their_order_and_revoked_ones_are_left_out() -> None:
    data = columns(
        clients=[wallet(2), wallet(1), wallet(2)],
        indexes=[1, 1, 2],
        values=[1, 2, 3],
        decimals=[0, 0, 0],
        tag1=[b"a", b"b", b"\xff" + b"c" * 300],
        tag2=[b"", b"", "\N{SNOWMAN}".encode()],
        revoked=[False, True, False],
    )
    first, last = erc8004.read_feedback(data)
    assert first == Feedback(wallet(2), 1, first.value, 0, "a", "")
    assert (last.client, last.index, last.value) == (wallet(2), 2, 3)
    assert last.tag1 == "\ufffd" + "c" * 199
    assert last.tag2 == "\N{SNOWMAN}"


def test_no_feedback_is_no_feedback() -> None:
    assert erc8004.read_feedback(feedback([])) == ()


def test_an_answer_that_names_the_same_bytes_many_times_is_refused() -> None:
    """Two thousand rows whose tags are all one long text: 140 kB that would become 80 MB."""
    rows, text = 2000, b"t" * 20_000
    heads = [7 * 32]
    words = word(rows) + b"".join(word(1) for _ in range(rows))
    lists = words * 4
    for _ in range(6):
        heads.append(heads[-1] + len(words))
    tags = word(rows) + word(rows * 32) * rows
    tail = word(len(text)) + text
    at_tag2 = heads[4] + len(tags) + len(tail)
    heads[5], heads[6] = at_tag2, at_tag2 + len(tags) + len(tail)
    data = b"".join(map(word, heads)) + lists + (tags + tail) * 2 + word(rows) + word(0) * rows
    with pytest.raises(BadAnswer):
        erc8004.read_feedback(data)


@pytest.mark.parametrize("length", [2**32, 2**255, 1])
def test_a_list_longer_than_the_answer_is_refused(length: int) -> None:
    with pytest.raises(BadAnswer):
        erc8004.read_addresses(word(32) + word(length))


@pytest.mark.parametrize("bits", [8, 128])
def test_signed_numbers_are_read_to_their_ends(bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for number in (low, -1, 0, high):
        assert AbiReader(encode([f"int{bits}"], [number])).signed(0, bits) == number
    for beyond in (low - 1, high + 1):
        with pytest.raises(BadAnswer):
            AbiReader(encode(["int256"], [beyond])).signed(0, bits)
