"""Do errors give away keys? Source: facts, "error discipline"; OWASP ASVS 16.5.1."""

from typing import ClassVar, Final

from assay.kit.json import JsonObject, is_array
from assay.trust.patterns import find_secrets
from assay.trust.ports import Finding, Probe, Severity, Visit
from assay.trust.provoking import provoked


class NoLeakedSecrets:
    """No answer to a bad request holds a private key, an API key or credentials.

    Kept is the kind of secret, never the secret.
    """

    name: ClassVar[str] = "no_leaked_secrets"
    family: ClassVar[str] = "error discipline"
    severity: ClassVar[Severity] = Severity.CRITICAL

    async def collect(self, visit: Visit) -> JsonObject | None:
        texts = await provoked(visit)
        if not texts:
            return None
        return {"leaked": sorted(await visit.slices.run(find_secrets(texts)))}

    def weigh(self, seen: JsonObject) -> Finding:
        leaked = seen["leaked"]
        if is_array(leaked) and leaked:
            listed = ", ".join(str(kind) for kind in leaked)
            return Finding("fail", f"Error messages give away secrets: {listed}.")
        return Finding("pass", "Error messages give away no secrets.")


PROBE: Final[Probe] = NoLeakedSecrets()
