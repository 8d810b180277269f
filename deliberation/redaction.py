"""Keeping secrets out of what a run leaves behind."""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

_SECRET_WORDS = frozenset(
    {"apikey", "authorization", "credential", "credentials", "passphrase", "passwd", "password"}
    | {"secret", "secrets"}
)
# Too common in names that hold no secret (`tokens_per_micro_batch`) to mask anything but text.
_LIKELY_WORDS = frozenset({"key", "keys", "token"})

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LOOKS_SECRET = re.compile(
    r"""
    (?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{8,}            # OpenAI, Anthropic, OpenRouter
      | (?:hf|gsk|glpat|r8)[_-][A-Za-z0-9_-]{8,}   # Hugging Face, Groq, GitLab, Replicate
      | xai-[A-Za-z0-9_-]{8,}
      | gh[pousr]_[A-Za-z0-9]{8,}
      | github_pat_[A-Za-z0-9_]{8,}
      | AIza[A-Za-z0-9_-]{20,}          # Google
      | AKIA[A-Z0-9]{12,}               # AWS
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web token
    )
    | (?<=Bearer\ )[^\s"']+
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)       # user:password in a URL
    | (?i:(?<=[?&]key=)|(?<=api_key=)|(?<=api-key=)|(?<=token=)|(?<=password=))[^\s&"'\#]+
    """,
    re.VERBOSE,
)


def redact_text(text: str) -> str:
    """The text with everything that looks like an API key or a password replaced by `***`."""
    return _LOOKS_SECRET.sub(MASK, text)


def redact(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A copy without secrets: what is kept under a name such as `api_key`, `hub_token` or
    `password` becomes `***`, and so does what looks like a secret inside any other text."""
    return {name: _redact_entry(str(name), value) for name, value in mapping.items()}


def _redact_entry(name: str, value: Any) -> Any:
    words = {word.lower() for word in _WORD.findall(name)}
    if "env" in words:  # the name of an environment variable, not its value
        return _redact_value(value)
    if words & _SECRET_WORDS and value not in (None, "", True, False):
        return MASK
    if words & _LIKELY_WORDS and isinstance(value, str) and value:
        return MASK
    return _redact_value(value)


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return redact(value)
    if isinstance(value, list | tuple):
        return [_redact_value(entry) for entry in value]
    return value
