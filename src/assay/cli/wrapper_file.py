"""`assay wrappers apply` and `export`: an operator's wrappers as a file."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from assay.app import App
from assay.cli.command import FAILED, Email, complain, explain, problems_in, with_app
from assay.common.errors import InvalidRequest, ServiceError
from assay.wrappers.endpoint_rules import SECRET_CHARS_MAX, EndpointChange, NewEndpoint
from assay.wrappers.history import HIDDEN, FieldChange
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import by_route
from assay.wrappers.wrapper_file import (
    FILE_BYTES_MAX,
    BadWrapperFile,
    DeclaredWrapper,
    parse,
    render,
)

DIFFERS: Final = 2
"""Status of a dry run that found something to do."""


@dataclass(frozen=True, slots=True)
class _PlannedChange:
    """One step: create without `known`, stop without `declared`, else change."""

    known: WrapperConfig | None
    declared: NewEndpoint | None
    change: EndpointChange
    differences: Sequence[FieldChange]

    @property
    def verb(self) -> str:
        if self.known is None:
            return "create"
        return "change" if self.declared else "delete"

    @property
    def name(self) -> str:
        of = self.declared or self.known
        return f"{of.method} {of.path}" if of else ""


def apply(
    email: Email,
    file: Annotated[Path, Parameter(help="YAML or JSON file that declares the wrappers.")],
    *,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Only show what would change; status 2 if anything.")
    ] = False,
    prune: Annotated[
        bool, Parameter(negative=(), help="Deactivate wrappers that the file does not have.")
    ] = False,
) -> int:
    """Make an account's wrappers what the file says, after all of it is validated."""
    declared = _read(file)
    if declared is None:
        return FAILED

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        known = await _by_key(app, operator.id)
        plan = await _planned(app, operator.id, known, declared)
        if plan is None:
            return FAILED
        if prune:
            kept = {one.key for one in declared}
            plan += [_stopped(c) for key, c in known.items() if c.active and key not in kept]
        for step in plan:
            _print(step)
        if not plan:
            sys.stdout.write("nothing to do\n")
        if dry_run or not plan:
            return DIFFERS if plan else 0
        return await _carry_out(app, operator.id, plan)

    return with_app(work)


def export(
    email: Email,
    *,
    inactive: Annotated[
        bool, Parameter(negative=(), help="Also drafts and stopped ones, with `active: false`.")
    ] = False,
) -> int:
    """Print the file that declares an account's wrappers, without secrets."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        found = (await _by_key(app, operator.id)).values()
        sys.stdout.write(render([one for one in found if one.active or inactive]))
        return 0

    return with_app(work)


def _read(file: Path) -> Sequence[DeclaredWrapper] | None:
    """Return what the file declares; None if it is refused, after the reason is printed."""
    try:
        with file.open("rb") as opened:
            text = opened.read(FILE_BYTES_MAX + 1)
        return parse(text, lambda name: _secret(file.parent / name))
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
    except BadWrapperFile as error:
        complain(f"{file}: {explain(error)}")
    return None


def _secret(path: Path) -> str:
    """Return the secret in a file, without its last line break."""
    if "\0" in str(path):
        raise FileNotFoundError("upstreamAuthSecretFile names no file")
    with path.open("rb") as opened:
        content = opened.read(SECRET_CHARS_MAX + 3)
    # Bytes that are not ASCII are refused by the rules of wrappers, which say what is.
    return content.decode("latin-1").rstrip("\r\n")


async def _by_key(app: App, operator_id: str) -> dict[str, WrapperConfig]:
    """Return the account's wrappers by method and path: the active one, else the newest."""
    return by_route([one for one in await app.endpoints.list(operator_id) if one.target_url])


async def _planned(
    app: App,
    operator_id: str,
    known: Mapping[str, WrapperConfig],
    declared: Sequence[DeclaredWrapper],
) -> list[_PlannedChange] | None:
    """Return the steps; None if an entry is refused, after every problem is printed."""
    plan: list[_PlannedChange] = []
    is_valid = True
    for one in declared:
        config = known.get(one.key)
        try:
            if config is None:
                differences = app.endpoints.preview_new(operator_id, one.asked)
                change = EndpointChange({})
            else:
                change = _change(app, config, one.asked)
                differences = await app.endpoints.preview(operator_id, config.id, change)
        except InvalidRequest as error:
            is_valid = False
            name = f"{one.asked.method} {one.asked.path}"
            for problem in problems_in(error):
                complain(f"line {one.line}: {json.dumps(name)}: {problem}")
            continue
        if differences:
            plan.append(_PlannedChange(config, one.asked, change, differences))
    return plan if is_valid else None


def _change(app: App, known: WrapperConfig, asked: NewEndpoint) -> EndpointChange:
    """Return the change to a wrapper; a secret that it has already is left out."""
    left_out = {"is_earlier_form", "active"}
    if asked.auth_secret is None or (
        (asked.target_url or "").rstrip("/") == known.target_url
        and _has_secret(app, known, asked.auth_secret)
    ):
        left_out.add("auth_secret")
    names = (one.name for one in fields(asked) if one.name not in left_out)
    return EndpointChange({name: getattr(asked, name) for name in names}, asked.active)


def _has_secret(app: App, known: WrapperConfig, secret: str) -> bool:
    try:
        return app.endpoints.upstream_secret(known) == secret.encode()
    except ValueError:  # no key of the ring opens it: the file's is stored
        return False


def _stopped(config: WrapperConfig) -> _PlannedChange:
    return _PlannedChange(config, None, EndpointChange({}, active=False), ())


def _print(step: _PlannedChange) -> None:
    sys.stdout.write(f"{step.verb}  {step.name}\n")
    for field, old, new in step.differences:
        said = "changed" if HIDDEN in (old, new) else f"{json.dumps(old)} -> {json.dumps(new)}"
        sys.stdout.write(f"    {field}: {said}\n")


async def _carry_out(app: App, operator_id: str, plan: Sequence[_PlannedChange]) -> int:
    """Carry out the steps in order; at the first refusal, say how far it came."""
    for number, step in enumerate(plan):
        try:
            if step.known is None and step.declared is not None:
                await app.endpoints.create(operator_id, step.declared)
            elif step.known is not None:
                await app.endpoints.change(
                    operator_id, step.known.id, step.change, if_revision=step.known.revision
                )
        except ServiceError as error:
            complain(f"{step.verb} {step.name}: {explain(error)}")
            complain(f"applied {number} of {len(plan)} changes, the rest is as it was")
            return FAILED
    sys.stdout.write(f"applied {len(plan)} changes\n")
    return 0
