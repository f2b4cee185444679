"""The work of tools/release: a reproducible wheel, its bill of materials and their hashes.

`SOURCE_DATE_EPOCH`, when set, is the time of the files in the wheel and of the bill; unset, the
builder's fixed time is in the wheel and no time in the bill.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements/runtime.txt"
LICENCE_CHARS_MAX = 60
"""A longer `License` field is a licence's text, and no name."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One line of the lock: a version, for these platforms, with the hashes of its files."""

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]


def main() -> int:
    """Build everything into the output folder; status 1 when the bill is not valid CycloneDX."""
    parser = argparse.ArgumentParser(description="Build the wheel, its bill of materials, hashes.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    output: Path = parser.parse_args().output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(output)
    bill = output / f"{wheel.stem.split('-py3', 1)[0]}.cdx.json"
    bill.write_text(bill_of_materials(wheel), "utf-8")
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text("utf-8"))
    sums = [f"{_sha256(file)}  {file.name}" for file in (bill, wheel)]
    (output / "SHA256SUMS").write_text("\n".join(sums) + "\n", "utf-8")
    sys.stdout.write("\n".join(sums) + "\n")
    if fault is not None:
        sys.stderr.write(f"the bill of materials is not valid: {fault}\n")
    return 0 if fault is None else 1


def build_wheel(output: Path) -> Path:
    """The wheel of this checkout. The builder sorts files and evens out their times and modes."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - constant
    project = _project()
    return output / f"{project['name']}-{project['version']}-py3-none-any.whl"


def bill_of_materials(wheel: Path) -> str:
    """CycloneDX 1.6 as JSON: the wheel, and every package that the lock of the runtime names.

    Hashes are those of the lock: of every file of that version, for pip takes any of them. Licences
    and the packages a package needs are known for those installed here, at the locked version.
    """
    project = _project()
    name, version = str(project["name"]), str(project["version"])
    licences = LicenseFactory()
    root = Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"pkg:pypi/{name}@{version}",
        purl=PackageURL("pypi", None, name, version),
        licenses=[licences.make_from_string(str(project["license"]))],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=_sha256(wheel))],
    )
    locked = {one.name: one for one in read_lock(LOCK)}
    direct = [Requirement(text) for text in _texts(project["dependencies"])]
    required = _reachable(direct, locked)
    components = {one.name: _component(one, one.name in required) for one in locked.values()}
    bom = Bom(components=components.values(), metadata=BomMetaData(component=root))
    bom.register_dependency(root, [components[canonicalize_name(r.name)] for r in direct])
    for one in locked.values():
        needs = [components[n] for n in sorted(_needs(one)) if n in components]
        bom.register_dependency(components[one.name], needs)
    return _told(json.loads(JsonV1Dot6(bom).output_as_string()))


def read_lock(path: Path) -> Iterator[Locked]:
    """The lines of a lock: `name==version ; marker`, then a hash of each of its files."""
    for line in path.read_text("utf-8").replace("\\\n", " ").splitlines():
        text, *hashes = line.split("--hash=sha256:")
        requirement = Requirement(text.strip())
        yield Locked(
            canonicalize_name(requirement.name),
            next(iter(requirement.specifier)).version,
            None if requirement.marker is None else str(requirement.marker),
            tuple(sorted(value.strip() for value in hashes)),
        )


def _told(document: dict[str, object]) -> str:
    """The bill without what changes from run to run: its time, and a random number."""
    about = document["metadata"]
    assert isinstance(about, dict)  # noqa: S101 - CycloneDX says so
    about.pop("timestamp", None)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")  # noqa: TID251 - of the build, not of the service
    if epoch is not None:
        about["timestamp"] = datetime.fromtimestamp(int(epoch), UTC).isoformat()
    document.pop("serialNumber", None)
    body = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, body)}"
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _component(one: Locked, is_required: bool) -> Component:  # noqa: FBT001
    ref = f"pkg:pypi/{one.name}@{one.version}"
    return Component(
        name=one.name,
        version=one.version,
        bom_ref=ref,
        purl=PackageURL("pypi", None, one.name, one.version),
        scope=ComponentScope.REQUIRED if is_required else ComponentScope.OPTIONAL,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=value) for value in one.hashes],
        licenses=_licences(one),
        description=None if one.marker is None else f"only where {one.marker}",
    )


def _licences(one: Locked) -> Sequence[License]:
    installed = _installed(one)
    if installed is None:
        return ()
    about = installed.metadata
    named = about.get("License-Expression") or about.get("License") or ""
    factory = LicenseFactory()
    if 0 < len(named) <= LICENCE_CHARS_MAX:
        return (factory.make_from_string(named.strip()),)
    listed = about.get_all("Classifier") or []
    titles = [c.rsplit(" :: ", 1)[1] for c in listed if c.startswith("License :: ") and " :: " in c]
    return tuple(factory.make_with_name(title) for title in sorted(set(titles)))


def _reachable(direct: Sequence[Requirement], locked: Mapping[str, Locked]) -> set[str]:
    """The packages that the service needs without any extra, as far as they are installed here."""
    found: set[str] = set()
    waiting = [(canonicalize_name(r.name), r.extras) for r in direct]
    while waiting:
        name, extras = waiting.pop()
        if name in found or name not in locked:
            continue
        found.add(name)
        waiting += [(needed, set()) for needed in _needs(locked[name], extras)]
    return found


def _needs(one: Locked, extras: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
    installed = _installed(one)
    needed = [Requirement(text) for text in (installed.requires or ())] if installed else []
    return {
        canonicalize_name(r.name)
        for r in needed
        if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ("", *extras))
    }


def _installed(one: Locked) -> metadata.Distribution | None:
    try:
        found = metadata.distribution(one.name)
    except metadata.PackageNotFoundError:
        return None
    return found if found.version == one.version else None


def _project() -> Mapping[str, object]:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert isinstance(found, dict)  # noqa: S101 - the build refuses anything else
    return found


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
