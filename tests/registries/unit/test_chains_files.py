"""Registration files: what is remembered of them, and what a used-up budget is not."""

from assay.registries.documents import DOCUMENT_TTL_S, FILES_KEPT, RegistrationFiles
from assay.registries.ports import OVER_BUDGET, Document, DocumentOverBudget, DocumentUnavailable
from tests.support.fakes.clock import FrozenClock

URI = "https://host.test/agent.json"


class Host:
    def __init__(self) -> None:
        self.fault: DocumentUnavailable | None = None
        self.asked = 0

    async def fetch(self, uri: str) -> Document:
        del uri
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return Document(b'{"name": "Seven"}')


async def test_a_file_that_the_budget_hides_is_as_it_was_last_read() -> None:
    host, clock = Host(), FrozenClock()
    files = RegistrationFiles(host, clock)
    before = await files.read(URI)
    clock.move(DOCUMENT_TTL_S + 1)
    host.fault = DocumentOverBudget(OVER_BUDGET)
    assert await files.read(URI) == before
    host.fault = DocumentUnavailable("the document's server answered with status 404")
    assert (await files.read(URI))[0] is None


async def test_that_a_budget_was_used_up_is_not_remembered() -> None:
    host = Host()
    files = RegistrationFiles(host, FrozenClock())
    host.fault = DocumentOverBudget(OVER_BUDGET)
    assert await files.read(URI) == (None, OVER_BUDGET)
    host.fault = None
    file, problem = await files.read(URI)
    assert file is not None
    assert problem is None


async def test_no_more_files_are_kept_than_the_bound_however_many_are_read() -> None:
    files = RegistrationFiles(Host(), FrozenClock())
    for number in range(10 * FILES_KEPT):
        await files.read(f"https://host.test/{number}")
    assert len(files._last_read) == FILES_KEPT
