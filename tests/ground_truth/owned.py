"""Honest agents with what their owners wrote into the registration file."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.ground_truth.site import Build, Built, Proof, Site, Spec


@dataclass(frozen=True)
class Owned(Spec):
    """An honest agent."""

    read_the_page: bool = False
    """Its owner has read how to get a better grade, and did the first things named there."""


def owned(
    group: str, kind: str, name: str, build: Build, about: str, *, proof: Proof = "well_known",
    inputs: Mapping[str, Any] | None = None, read: bool = False,
) -> Owned:  # fmt: skip
    """One of a set, with its owner's description and inputs."""
    said: dict[str, Any] = {"description": about}
    if inputs is not None:
        said["testInputs"] = dict(inputs)

    async def described(site: Site) -> Built:
        made = build(site)
        built = await made if inspect.isawaitable(made) else made
        return replace(built, file={**built.file, **said})

    return Owned(f"{group} {kind}", name, "honest", described, proof, read_the_page=read)
