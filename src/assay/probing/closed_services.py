"""Services of a visit that are closed to callers without a credential."""

from collections.abc import Sequence

from assay.common.json import JsonObject
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.function import function_rows
from assay.probing.ports import ProbeSession, VisitedService
from assay.probing.session import VisitHttp


def entered_row(http: VisitHttp, declared: Sequence[VisitedService]) -> JsonObject:
    """Return the member `entry`; absent if no service was closed."""
    row = http.entry.row([v.service.endpoint for v in declared])
    return {"entry": row} if row else {}


def deposited_for(visit: ProbeSession) -> frozenset[str]:
    """Return the services of the visit for which a credential was deposited."""
    if not isinstance(visit.http, VisitHttp):
        return frozenset()
    return frozenset(visit.http.entry.deposited([v.service.endpoint for v in visit.services]))


def closed_to(
    visit: ProbeSession, transcripts: Sequence[JsonObject], deposited: frozenset[str]
) -> Sequence[str]:
    """Return those of them that are closed to callers without a credential."""
    if not isinstance(visit.http, VisitHttp):
        return ()
    refusing = frozenset(visit.http.entry.closed(sorted(deposited)))
    rows = [row for row in function_rows(transcripts) if row["state"] != "functional"]
    named = {str(row["service"]) for row in rows}
    return tuple(
        v.service.endpoint for v in visit.services if v.service.endpoint in refusing & named
    )


def without_entry(transcript: JsonObject, closed: Sequence[str]) -> JsonObject:
    """Return the transcript; that of a closed service says that it was not entered."""
    is_closed = transcript.get("service") in closed
    return {**transcript, "end": NOT_ENTERED} if is_closed else transcript
