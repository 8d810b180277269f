"""Parts from outside: judges, environments, rewards and samplers that other packages bring."""

import difflib
import importlib
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from deliberation.errors import ConfigError


def load_plugin(group: str, name: str) -> Any:
    """What an installed entry point or `module:Name` refers to.

    Args:
        group: the entry point group, e.g. `deliberation.judges`.
        name: the name of an entry point of that group, or `module:Name`, where the module is
            installed or lies in the working directory.

    Raises:
        ConfigError: there is no such entry point, module or name, or its import fails; the
            sentence repeats what the import said.
    """
    if ":" in name:
        point = EntryPoint(name=name, value=name, group=group)
        _allow_working_directory()
    else:
        point = _installed(group, name)
    module, _, attributes = point.value.partition(":")
    if not module or not attributes:
        raise ConfigError(f'"{name}" is not of the form module:Name; write both parts.')
    try:
        value: Any = importlib.import_module(module)
    except Exception as error:
        raise ConfigError(
            f'{group} plugin "{name}": importing {module} failed with '
            f"{type(error).__name__}: {error}; correct the name or the module."
        ) from error
    for attribute in attributes.split("."):
        if not hasattr(value, attribute):
            near = difflib.get_close_matches(attribute, dir(value), n=1)
            hint = f'did you mean "{near[0]}"?' if near else "check the name."
            raise ConfigError(f'{group} plugin "{name}": {module} has no "{attribute}"; {hint}')
        value = getattr(value, attribute)
    return value


def plugin_names(group: str) -> tuple[str, ...]:
    """Names of the installed entry points of a group."""
    return tuple(sorted(point.name for point in entry_points(group=group)))


def _installed(group: str, name: str) -> EntryPoint:
    for point in entry_points(group=group):
        if point.name == name:
            return point
    names = plugin_names(group)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        hint = f'did you mean "{near[0]}"?'
    elif names:
        hint = f"installed are {', '.join(names)}; or write module:Name."
    else:
        hint = "none is installed; install the package that brings it, or write module:Name."
    raise ConfigError(f'No {group} plugin is called "{name}"; {hint}')


def _allow_working_directory() -> None:
    # Last, so that a file in the working directory never shadows an installed module.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
