"""Configs: a YAML file and overrides, checked key by key, become a filled-in dataclass.

Nothing heavy is imported, so that a misspelt key is reported before any model is touched.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from deliberation.config import AboutConfig, Checked
from deliberation.errors import ConfigError
from deliberation.schema import Key, KeyRow, Schema, describe_keys, walk, walk_sections
from deliberation.textfile import read_text
from deliberation.typed_yaml import Setting, YamlError, scalar, settings_in, unknown_key

__all__ = [
    "KeyRow",
    "PackagedConfig",
    "check",
    "describe_keys",
    "find_config",
    "load",
    "load_section",
    "packaged_configs",
    "to_yaml",
]

T = TypeVar("T")

Located = tuple[str, Setting]
"""Where a setting was made, and the setting."""

RECORD_SECTIONS = frozenset({"provenance"})
"""What a run adds to its `config.yaml`; passed over, so that such a file can be run again."""


def load(schema: type[T], name_or_path: str, overrides: Sequence[str] = ()) -> T:
    """A filled-in instance of `schema`, a dataclass whose fields are made by `config.key`.

    Args:
        schema: e.g. `TrainingConfig`.
        name_or_path: a packaged config by name (`quickstart`), or the path of a YAML file.
        overrides: `section.key=value`, in order; the last of two for the same key wins.

    Raises:
        ConfigError: a file or key that does not exist, a value of a wrong type or out of bounds,
            keys that clash, a mandatory value that is missing. The sentence starts with the file
            and line, or the override, where there is one.
        DataError: the file is not readable text.
    """
    path = find_config(name_or_path)
    keys = Schema.of(schema)
    settings = [*_file_settings(path, keys), *_override_settings(overrides, keys)]
    return _filled(schema, keys, settings, str(path))


def load_section(schema: type[T], overrides: Sequence[str], place: str) -> T:
    """A filled-in instance of a section by itself, from overrides alone.

    Args:
        overrides: `key=value`, without the section's name.
        place: what an error message calls the section.

    Raises:
        ConfigError: as `load`.
    """
    keys = Schema.of(schema)
    return _filled(schema, keys, _override_settings(overrides, keys), place)


def _filled(schema: type[T], keys: Schema, settings: Iterable[Located], place: str) -> T:
    config = OmegaConf.structured(schema)
    origin: dict[str, str] = {}
    for where, setting in settings:
        try:
            OmegaConf.update(config, setting.key, setting.value)
        except OmegaConfBaseException as error:  # a ${…} that does not parse
            raise _resolution_error(error, f"{where}: {setting.key}") from None
        origin[setting.key] = where
    _refuse_missing(config, keys, place)
    filled = _resolve(config, origin, place)
    if not isinstance(filled, schema):  # OmegaConf gives an instance of what it was built from
        raise TypeError(f"{type(filled)} is not {schema}")
    check(filled, origin, default_origin=place)
    return filled


def check(
    config: Any, origin: Mapping[str, str] | None = None, *, default_origin: str = ""
) -> None:
    """Refuse a config whose values are out of bounds or do not go together.

    For configs that were made in Python; `load` calls it too.

    Args:
        config: an instance of a config dataclass.
        origin: where each key was set, by dotted key.
        default_origin: where keys that are not in `origin` come from.

    Raises:
        ConfigError: for the first broken rule, quoting key and value.
    """
    origin = origin or {}
    missing = [key.name for key in walk(config) if key.missing or _blank(key)]
    if missing:
        raise ConfigError(_missing_sentence(missing, default_origin))
    for key in walk(config):
        values = key.value if isinstance(key.value, list) else [key.value]
        for value in values:
            need = key.bounds.need(value)
            if need is not None:
                where = _prefix(origin.get(key.name, default_origin))
                raise ConfigError(f"{where}{key.name} is {value}; it {need}.")
    for prefix, section in walk_sections(config):
        if isinstance(section, Checked):
            for problem in section.problems():
                name = prefix + problem.key
                where = _prefix(origin.get(name, default_origin))
                raise ConfigError(f"{where}{name} {problem.sentence}.")


def _blank(key: Key) -> bool:
    """Whether a text that has no default was given as nothing but spaces."""
    return key.mandatory and isinstance(key.value, str) and not key.value.strip()


def to_yaml(config: Any) -> str:
    """A filled-in config as YAML that `load` reads back to the same values."""
    text: str = OmegaConf.to_yaml(OmegaConf.structured(config))
    return text


@dataclass(frozen=True)
class PackagedConfig:
    """A config that comes with the package."""

    name: str
    path: Path
    about: AboutConfig


def packaged_configs() -> tuple[PackagedConfig, ...]:
    """The configs that come with the package, by name."""
    return tuple(
        PackagedConfig(path.stem, path, _about(path)) for path in sorted(_folder().glob("*.yaml"))
    )


def find_config(name_or_path: str) -> Path:
    """The file of a packaged config (by name) or at a path.

    Raises:
        ConfigError: there is none; the sentence lists what there is.
    """
    names = [path.stem for path in sorted(_folder().glob("*.yaml"))]
    if name_or_path in names:
        return _folder() / f"{name_or_path}.yaml"
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise ConfigError(f"{name_or_path}: this is a folder; name a YAML file inside it.")
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise ConfigError(f"{name_or_path}: no such config file; check the path.")
    near = difflib.get_close_matches(name_or_path, names, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else f" (there are: {', '.join(names)})."
    raise ConfigError(
        f'"{name_or_path}" is neither a config that comes with the package nor a file{hint}'
    )


def _folder() -> Path:
    return Path(str(resources.files("deliberation.configs")))


def _about(path: Path) -> AboutConfig:
    document = yaml.safe_load(read_text(path))
    about = document.get("about", {})
    return AboutConfig(**about)


def _file_settings(path: Path, keys: Schema) -> list[Located]:
    try:
        found = settings_in(read_text(path), keys, ignore=RECORD_SECTIONS)
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}: {error.sentence}.") from None
    return [(f"{path}:{setting.line}", setting) for setting in found]


def _override_settings(overrides: Iterable[str], keys: Schema) -> list[Located]:
    located: list[Located] = []
    for override in overrides:
        where = f'override "{override}"'
        name, equals, text = override.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigError(
                f"{where}: not of the form key=value; write for example train.steps=4."
            )
        if name in keys.sections:
            raise ConfigError(
                f'{where}: "{name}" is a section; set its keys one by one, as {name}.key=value.'
            )
        if name not in keys.keys:
            raise ConfigError(f"{where}: {unknown_key(name, keys)}.")
        try:
            value = _override_value(name, text, keys)
        except YamlError as error:
            raise ConfigError(f"{where}: {error.sentence}.") from None
        except ValueError as error:
            raise ConfigError(f"{where}: {error}.") from None
        located.append((where, Setting(name, value, 0)))
    return located


def _override_value(name: str, text: str, keys: Schema) -> Any:
    key = keys.keys[name]
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""
    if key.hint is str and not quoted and text.strip() not in ("", "null", "~"):
        # Taken as it stands: a model string may hold what YAML reads as a comment or a mapping.
        return scalar(text, key, quoted=False)
    # As a line of YAML below its section, so that files and overrides obey the same rules.
    parts = name.split(".")
    lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(parts)]
    return settings_in("\n".join(lines) + f" {text}", keys)[0].value


def _refuse_missing(config: DictConfig, keys: Schema, where: str) -> None:
    # Unresolved: a key that only points to a missing one is not itself what has to be given.
    missing = [name for name in keys.keys if _raw(config, name) == MISSING]
    if missing:
        raise ConfigError(_missing_sentence(missing, where))


def _raw(config: DictConfig, name: str) -> Any:
    value: Any = OmegaConf.to_container(config, resolve=False)
    for part in name.split("."):
        value = value[part]
    return value


def _missing_sentence(names: Sequence[str], where: str) -> str:
    example = f"{names[0]}=…"
    return (
        f"{_prefix(where)}no value is given for {', '.join(names)}; "
        f"write {'it' if len(names) == 1 else 'them'} into the file or add {example} "
        "to the command."
    )


def _resolve(config: DictConfig, origin: Mapping[str, str], where: str) -> Any:
    try:
        OmegaConf.resolve(config)
        return OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        name = str(error.full_key or "")
        raise _resolution_error(error, f"{_prefix(origin.get(name, where))}{name}") from None


def _resolution_error(error: OmegaConfBaseException, place: str) -> ConfigError:
    reason = str(error.msg or error).splitlines()[0].rstrip(".")
    return ConfigError(f"{place} cannot be resolved: {reason}; correct the ${{…}} in it.")


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""
