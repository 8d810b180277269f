"""What holds for all tests."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import hypothesis

BARE_NAMES = frozenset({"configs", "dilemmas", "eval", "judge", "personas", "train"})
"""Folders at the top of the repository; their modules exist as `deliberation.judge` and so on."""


class _NoBareNames(MetaPathFinder):
    """Under its bare name a module would be loaded a second time, with classes of its own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and fullname in BARE_NAMES:
            raise AssertionError(f"{fullname} is imported under its bare name")
        return None


sys.meta_path.insert(0, _NoBareNames())

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
