"""Do errors give away how the service is built? Source: facts, "error discipline"; CWE-209."""

from typing import ClassVar, Final

from assay.common.json import JsonObject, is_array
from assay.probing.malformed_requests import REPOSITORY, provoked, public_pages
from assay.probing.patterns import find_internals
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import host_of
from assay.probing.text_tools import mistaken
from assay.probing.wrong_values import wrongly_asked

REPOSITORY_SIGN = "repositoryformatversion"
"""What every Git configuration holds. Source: git, "gitrepository-layout"."""


class NoLeakedInternals:
    """No answer to a bad request holds a stack trace, a file path or an internal address.

    Apart from `no_leaked_secrets`, because popular frameworks do this in development mode: a
    fault, and not yet a breach. What the service's own public pages show as well is no leak: a
    page of documentation may answer every address.
    """

    name: ClassVar[str] = "no_leaked_internals"
    family: ClassVar[str] = "error discipline"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        asked = [*await provoked(visit), *await mistaken(visit), *await wrongly_asked(visit)]
        if not asked:
            return None
        own = [host_of(v.service.endpoint) for v in visit.services]
        leaked = set(await visit.slices.run(find_internals((one.text for one in asked), own)))
        if leaked:
            leaked -= await visit.slices.run(find_internals(await public_pages(visit), own))
        if any(one.request == REPOSITORY and REPOSITORY_SIGN in one.text for one in asked):
            leaked.add("source repository")
        return {"leaked": sorted(leaked)}

    def weigh(self, seen: JsonObject) -> Finding:
        leaked = seen["leaked"]
        if is_array(leaked) and leaked:
            listed = ", ".join(str(kind) for kind in leaked)
            return Finding("fail", f"Error messages give away internals: {listed}.")
        return Finding("pass", "Error messages give away no internals.")


PROBE: Final[Probe] = NoLeakedInternals()
