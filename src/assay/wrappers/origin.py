"""The origin of wrappers: the app's, or one of their own (`ASSAY_WRAP_URL`).

At the app's origin an upstream's page must not act as a page of ours: it is sandboxed, sets no
cookies and asks for no passwords. A separate origin keeps wrappers and the app apart.
"""

from dataclasses import dataclass

from assay.common.http_heads import HeaderPairs, authority_of, origin_of


@dataclass(frozen=True, slots=True)
class WrapperOrigin:
    """The public address of wrappers, and the `Host` that serves only wrappers."""

    address: str
    app_address: str
    own_authority: str | None
    """None if they share the app's origin, and every `Host` serves both."""

    @classmethod
    def of(cls, app_address: str, wrap_url: str | None) -> "WrapperOrigin":
        """Return it from the app's address and the setting; equal origins count as one."""
        if wrap_url is None or origin_of(wrap_url) == origin_of(app_address):
            return cls(app_address, app_address, None)
        scheme, _, host = wrap_url.partition("://")
        return cls(wrap_url, app_address, authority_of(scheme, host))

    @property
    def is_shared(self) -> bool:
        """Return whether wrappers are served at the origin of the app."""
        return self.own_authority is None

    def serves_wrappers(self, host: str) -> bool:
        """Return whether a request with this `Host` may be for a wrapper."""
        return self.own_authority is None or self._is_own(host)

    def serves_app(self, host: str) -> bool:
        """Return whether a request with this `Host` may be for the API."""
        return self.own_authority is None or not self._is_own(host)

    def _is_own(self, host: str) -> bool:
        return authority_of(self.address.partition("://")[0], host) == self.own_authority


def host_of(headers: HeaderPairs) -> str:
    """Return the `Host` of a request with lower-case names; empty without one."""
    return next((value.decode("latin-1") for name, value in headers if name == b"host"), "")
