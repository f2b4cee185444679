"""Do errors give away how the service is built? Source: facts, "error discipline"; CWE-209."""

from typing import ClassVar, Final

from assay.kit.json import JsonObject, is_array
from assay.trust.asking import host_of
from assay.trust.patterns import find_internals
from assay.trust.ports import Finding, Probe, Severity, Visit
from assay.trust.provoking import provoked


class NoLeakedInternals:
    """No answer to a bad request holds a stack trace, a file path or an internal address.

    Apart from `no_leaked_secrets`, because popular frameworks do this in development mode: a
    fault, and not yet a breach.
    """

    name: ClassVar[str] = "no_leaked_internals"
    family: ClassVar[str] = "error discipline"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: Visit) -> JsonObject | None:
        texts = await provoked(visit)
        if not texts:
            return None
        own = [host_of(v.service.endpoint) for v in visit.services]
        return {"leaked": sorted(await visit.slices.run(find_internals(texts, own)))}

    def weigh(self, seen: JsonObject) -> Finding:
        leaked = seen["leaked"]
        if is_array(leaked) and leaked:
            listed = ", ".join(str(kind) for kind in leaked)
            return Finding("fail", f"Error messages give away internals: {listed}.")
        return Finding("pass", "Error messages give away no internals.")


PROBE: Final[Probe] = NoLeakedInternals()
