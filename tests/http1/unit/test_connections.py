"""How many connections one address, one network and everybody may hold."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from assay.http1.connections import PROVISIONAL_MAX, ConnectionCaps, Connections

CAPS = ConnectionCaps(total=100, per_address=10, per_network=20)


@dataclass(eq=False)
class Peer:
    is_dropped: bool = False

    def drop(self) -> None:
        self.is_dropped = True


@dataclass
class Crowd:
    told: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])

    def __call__(self, address: str, held: int, total: int) -> None:
        self.told.append((address, held, total))


def counted(crowd: Crowd | None = None) -> Connections:
    return Connections(CAPS, lambda address: address.startswith("10."), crowd or Crowd())


def admitted(table: Connections, *addresses: str) -> int:
    return sum(table.admit(Peer(), one) for one in addresses)


def test_one_address_holds_its_share_and_leaves_the_others_theirs() -> None:
    table = counted()
    assert admitted(table, *["192.0.2.1"] * 50) == CAPS.per_address
    assert admitted(table, *["192.0.2.2"] * 5) == 5
    assert admitted(table, *[f"192.0.2.{n}" for n in range(100, 200)]) == 5, "their network's rest"
    assert admitted(table, "198.51.100.1") == 1


def test_an_ipv6_network_of_64_bits_is_one_address() -> None:
    table = counted()
    assert admitted(table, *[f"2001:db8::{n:x}" for n in range(50)]) == CAPS.per_address
    assert admitted(table, *[f"2001:db8:0:{n:x}::1" for n in range(1, 50)]) == 10
    assert admitted(table, "2001:db8:1::1") == 1


def test_a_trusted_proxy_is_bounded_by_nothing_but_the_whole() -> None:
    table = counted()
    assert admitted(table, *["10.0.0.1"] * 200) == CAPS.total
    assert table.is_full


def test_a_connection_that_ends_makes_room() -> None:
    table, peers = counted(), [Peer() for _ in range(CAPS.per_address)]
    assert all(table.admit(one, "192.0.2.1") for one in peers)
    assert not table.admit(Peer(), "192.0.2.1")
    table.release(peers[0])
    table.release(peers[0])
    assert table.admit(Peer(), "192.0.2.1")
    assert not table.admit(Peer(), "192.0.2.1")


def test_of_connections_beyond_a_cap_the_newest_are_heard() -> None:
    table = counted()
    admitted(table, *["192.0.2.1"] * CAPS.per_address)
    beyond = [Peer() for _ in range(PROVISIONAL_MAX + 3)]
    assert not any(table.admit(one, "192.0.2.1") for one in beyond)
    assert [one.is_dropped for one in beyond] == [True] * 3 + [False] * PROVISIONAL_MAX


def test_who_opens_connections_without_end_drops_its_own_and_no_health_check_of_others() -> None:
    table = counted()
    admitted(table, *[f"203.0.{n}.1" for n in range(CAPS.total)])
    assert table.is_full
    checks = [Peer() for _ in range(3)]
    assert not any(table.admit(one, "198.51.100.1") for one in checks)
    flood = [Peer() for _ in range(20 * PROVISIONAL_MAX)]
    for n, one in enumerate(flood):  # from every address of its network
        table.admit(one, f"192.0.2.{n % 256}")
    assert [one.is_dropped for one in checks] == [False] * 3
    assert sum(not one.is_dropped for one in flood) == PROVISIONAL_MAX - len(checks)


def test_an_untrusted_address_with_most_connections_is_told_of() -> None:
    crowd = Crowd()
    table = Connections(ConnectionCaps(), lambda address: address.startswith("10."), crowd)
    admitted(table, *["10.0.0.1"] * 40)
    admitted(table, *["192.0.2.1"] * 40)
    assert crowd.told == []
    admitted(table, "192.0.2.1")
    assert crowd.told == [("192.0.2.1", 41, 81)]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200))
def test_counts_are_those_of_the_open_connections(steps: list[tuple[int, bool]]) -> None:
    table = counted()
    held: dict[int, list[Peer]] = {}
    for number, opens in steps:
        mine = held.setdefault(number, [])
        if opens:
            one = Peer()
            is_in = table.admit(one, f"192.0.{number}.1")
            assert is_in == (len(mine) < CAPS.per_address)
            if is_in:
                mine.append(one)
        elif mine:
            table.release(mine.pop())
    for mine in held.values():
        for one in mine:
            table.release(one)
    assert table._open == {}
