"""Names and lines of the files of a run folder, as its writer and its reader share them."""

import json
import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deliberation.episode import SCHEMA_VERSION, Episode
from deliberation.errors import RunError

log = logging.getLogger(__name__)

CONFIG = "config.yaml"
METRICS = "metrics.jsonl"
LOCK = "lock"
EPISODES = "episodes"
CARD = "README.md"
CHECKPOINTS = "checkpoints"
ABANDONED = "abandoned"
REPORT = "report.html"

_EPISODE_FILE = re.compile(r"step-(\d+)(\.partial)?\.jsonl")


def final_path(run: Path, step: int) -> Path:
    """File of a step whose update is done."""
    return run / EPISODES / f"step-{step:06d}.jsonl"


def partial_path(run: Path, step: int) -> Path:
    """File that episodes of a step are appended to as they end."""
    return run / EPISODES / f"step-{step:06d}.partial.jsonl"


@dataclass(frozen=True)
class EpisodeFile:
    path: Path
    step: int
    partial: bool


def episode_files(run: Path) -> list[EpisodeFile]:
    """Every episode file of the run by step, the partial one of a step last."""
    files = []
    folder = run / EPISODES
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _EPISODE_FILE.fullmatch(path.name)
        if match is not None:
            files.append(EpisodeFile(path, int(match[1]), match[2] is not None))
    return sorted(files, key=lambda file: (file.step, file.partial))


def read_lines(path: Path) -> tuple[list[bytes], int]:
    """The lines of a file without their ends, and how many bytes these lines and ends take.

    What follows the last line end was cut off while it was written and is left out; so is a last
    line that is not JSON: after a power cut a file may be as long as it should be and yet empty.
    """
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.split(b"\n")[:-1]
    length = len(whole)
    if lines and not _is_json(lines[-1]):
        length -= len(lines.pop()) + 1
    return lines, length


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:  # also not UTF-8
        return False
    return True


def encode_line(row: Mapping[str, Any], where: str) -> bytes:
    """A row as one line of UTF-8 JSON that every reader can load again.

    Text is kept as it is, except for half a surrogate pair, which no file can hold and which
    becomes U+FFFD. Raises `RunError` for NaN and infinities: JSON has none.
    """
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise RunError(
            f"{where}: a number in it is not finite ({error}); the model or the judge that gave "
            "it is broken, so it was not recorded."
        ) from None
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Through UTF-16 two halves that belong together become the character that they mean.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        count = whole.count("\ufffd") - text.count("\ufffd")
        log.warning("%s: half a surrogate pair became U+FFFD (%d times).", where, count)
        return whole.encode() + b"\n"


def decode_row(line: bytes, where: str) -> dict[str, Any]:
    """The inverse of `encode_line`; `where` (file:line) starts the message of the `RunError`."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise RunError(f"{where}: damaged ({error}); restore the file from a copy.") from None
    if not isinstance(row, dict):
        raise RunError(f"{where}: damaged (not an object); restore the file from a copy.")
    return row


def encode_episode(episode: Episode) -> bytes:
    """An episode as one line, its log-probs exact to the last bit."""
    return encode_line(episode.model_dump(), f"episode {episode.id}")


def decode_episode(row: Mapping[str, Any], where: str) -> Episode:
    """An episode from its row. Raises `RunError` if it is damaged or of a newer version."""
    version = row.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise RunError(
            f"{where}: written by a newer deliberation (schema version {version}, this one reads "
            f"up to {SCHEMA_VERSION}); upgrade with `pip install -U deliberation`."
        )
    try:
        return Episode.model_validate(row)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise RunError(
            f"{where}: not an episode (`{field}`: {problem['msg']}); restore the file from a copy."
        ) from None


def iterate_rows(path: Path, *, growing: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a JSON Lines file with its place as `file:line`.

    A file that is `growing`, line by line, may end in the middle of one; it is left out.
    """
    lines, length = read_lines(path)
    if not growing and length != path.stat().st_size:
        raise RunError(f"{path}:{len(lines) + 1}: damaged; restore the file from a copy.")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path}:{number}"
            yield where, decode_row(line, where)


def finite_or_none(value: Any) -> Any:
    """A figure for `metrics.jsonl`: NaN and infinities are missing values, so null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite_or_none(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(entry) for entry in value]
    return value
