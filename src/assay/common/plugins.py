"""Plugins are files in a folder, or values in a list of modules; only this looks for them."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class NamedPlugin(Protocol):
    """What every plugin has: the name it is known by."""

    name: str


P = TypeVar("P")


class PluginError(RuntimeError):
    """A folder of plugins that must not start: a file without its plugin, or a name twice."""


def load_plugins(package: ModuleType, attribute: str, kind: type[P]) -> Mapping[str, P]:
    """Every module of `package` must offer `attribute`; returns them by their `name`, sorted.

    `kind` only carries the type: conformance is the type checker's work, at the plugin's last
    line. Raises `PluginError` for a module without the attribute, a plugin without a name, or
    two plugins of one name.
    """
    del kind
    found: dict[str, P] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        plugin = getattr(module, attribute, None)
        if not isinstance(plugin, NamedPlugin):
            raise PluginError(f"{module.__name__} offers no {attribute} with a name")
        if plugin.name in found:
            raise PluginError(f"two plugins of {package.__name__} are called {plugin.name!r}")
        found[plugin.name] = plugin  # type: ignore[assignment] - checked at the plugin's own file
    return MappingProxyType(dict(sorted(found.items())))


def values_of(modules: Iterable[ModuleType], kind: type[P]) -> Mapping[str, P]:
    """The values of `kind` that the modules define, by their `name`, sorted.

    Raises `PluginError` for a module without one, and for two of one name.
    """
    found: dict[str, P] = {}
    for module in modules:
        values = [value for value in vars(module).values() if isinstance(value, kind)]
        if not values:
            raise PluginError(f"{module.__name__} defines no {kind.__name__}")
        for value in values:
            if not isinstance(value, NamedPlugin):
                raise PluginError(f"{module.__name__} defines a {kind.__name__} without a name")
            if value.name in found:
                raise PluginError(f"two of {kind.__name__} are called {value.name!r}")
            found[value.name] = value
    return MappingProxyType(dict(sorted(found.items())))
