"""Finds plugins: files of a folder, or values of listed modules."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class NamedPlugin(Protocol):
    """What every plugin has: its name."""

    name: str


P = TypeVar("P")


class PluginError(RuntimeError):
    """A folder's plugins cannot be loaded: a file lacks its plugin, or a name appears twice."""


def load_plugins(package: ModuleType, attribute: str, kind: type[P]) -> Mapping[str, P]:
    """Return the `attribute` of every module of `package` by its `name`, sorted.

    `kind` only carries the type; the type checker checks conformance at the plugin's last line.
    Raises `PluginError` for a module without the attribute, a plugin without a name, or two plugins
    of one name.
    """
    del kind
    found: list[tuple[str, P]] = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        plugin = getattr(module, attribute, None)
        if not isinstance(plugin, NamedPlugin):
            raise PluginError(f"{module.__name__} offers no {attribute} with a name")
        found.append((plugin.name, plugin))  # type: ignore[arg-type] - checked at the plugin's file
    return _by_name(found, f"plugins of {package.__name__}")


def values_of(modules: Iterable[ModuleType], kind: type[P]) -> Mapping[str, P]:
    """Return the values of `kind` that the modules define by their `name`, sorted.

    Raises `PluginError` for a module without one, and for two of one name.
    """
    found: list[tuple[str, P]] = []
    for module in modules:
        values = [value for value in vars(module).values() if isinstance(value, kind)]
        if not values:
            raise PluginError(f"{module.__name__} defines no {kind.__name__}")
        for value in values:
            if not isinstance(value, NamedPlugin):
                raise PluginError(f"{module.__name__} defines a {kind.__name__} without a name")
            found.append((value.name, value))
    return _by_name(found, kind.__name__)


def _by_name(found: Iterable[tuple[str, P]], what: str) -> Mapping[str, P]:
    by_name: dict[str, P] = {}
    for name, value in found:
        if name in by_name:
            raise PluginError(f"two {what} are called {name!r}")
        by_name[name] = value
    return MappingProxyType(dict(sorted(by_name.items())))
