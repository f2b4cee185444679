"""Whether somebody knows an account's password; what strangers may try of it is bounded here."""

from dataclasses import dataclass

from assay.accounts.clients import Client, Origins
from assay.accounts.credential_ports import CredentialStore, LoginRecord
from assay.accounts.fields import EMAIL_CHARS_MAX, PASSWORD_CHARS
from assay.accounts.model import Operator, OperatorNotFound, PasswordWrong
from assay.accounts.ports import HashClient, PasswordHasher
from assay.accounts.throttle import Attempt, LoginThrottle


@dataclass(frozen=True, slots=True)
class PasswordAttempt:
    """An attempt with a password, and what came of it."""

    attempt: Attempt
    """Counts as a failure until it is given back."""
    record: LoginRecord | None
    """The account of the e-mail address."""
    holds: bool
    """Whether the password is the account's."""


class PasswordProof:
    """Checks passwords, a bounded number of times."""

    def __init__(
        self,
        store: CredentialStore,
        hasher: PasswordHasher,
        throttle: LoginThrottle,
        origins: Origins,
    ) -> None:
        self._store = store
        self._hasher = hasher
        self.throttle = throttle
        self.origins = origins

    async def check(self, email: str, password: str, client: Client) -> PasswordAttempt:
        """Try a password; an unknown e-mail address takes as long as a wrong password.

        Raises `TooMany` during a delay; a check that could not be made counts for nothing.
        """
        email = email.strip()[:EMAIL_CHARS_MAX]
        record = await self._store.find_login(email, self.origins.of(client))
        is_known = record is not None and record.is_known_origin
        attempt = self.throttle.begin(email, client.network, is_known=is_known)
        caller = HashClient(client.network, network=client.around)
        if record is not None and is_known:
            caller = HashClient(record.operator.id, is_known=True, network=client.around)
        stored = record.password_hash if record else None
        try:
            holds = await self._hasher.verify(stored, password[: PASSWORD_CHARS.stop], caller)
        except BaseException:
            self.throttle.give_back(attempt)
            raise
        return PasswordAttempt(attempt, record, holds)

    async def confirm(self, operator: Operator, password: str, client: Client) -> LoginRecord:
        """The account of somebody who is logged in, once the password has been given again.

        Raises `PasswordWrong`, and `TooMany` during a delay.
        """
        proof = await self.check(operator.email, password, client)
        if not proof.holds:
            raise PasswordWrong("The present password is wrong.")
        if proof.record is None or proof.record.operator.id != operator.id:
            raise OperatorNotFound("There is no account of this id.")
        self.throttle.succeeded(proof.attempt)
        return proof.record
