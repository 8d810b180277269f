"""The docs say what is true: their commands and examples run, their names, figures and links exist.

A fenced block of commands or of Python is run, unless the paragraph right above it says why not, in
italics: `*Not run by the tests: …*`.
"""

import ast
import inspect
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from pydantic import BaseModel

import deliberation
from deliberation.store import RunStore
from scripts.configuration_reference import TARGET, reference
from tests.helpers.episodes import agreeing, disagreeing
from tests.helpers.reports import CONFIG, play
from tests.helpers.tiny import save_tiny

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
COMMANDS = ("console", "bash", "sh")
NOT_RUN = ("text", "toml", "yaml", "json")
"""Blocks that nobody would paste into a shell or an interpreter."""
REASON = re.compile(r"\*Not run by the tests: (.{10,})\*", re.DOTALL)
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Block:
    document: Path
    line: int
    language: str
    text: str
    reason: str | None
    """Why the tests don't run it; None where they do."""

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def commands(self) -> str:
        """What stands after the `$ ` of a console block, continued lines included."""
        if self.language != "console":
            return self.text
        lines, goes_on = [], False
        for line in self.text.splitlines():
            assert goes_on or line.startswith("$ "), f"{self.name}: output belongs in a text block"
            lines.append(line if goes_on else line.removeprefix("$ "))
            goes_on = line.endswith("\\")
        return "\n".join(lines)


def blocks_of(document: Path) -> list[Block]:
    tokens = MarkdownIt().parse(document.read_text(encoding="utf-8"))
    found = []
    for place, token in enumerate(tokens):
        assert token.type != "code_block", f"{document.name}: a block without a fence"
        if token.type == "fence":
            assert token.map is not None
            above = tokens[place - 2].content if tokens[place - 1].type == "paragraph_close" else ""
            reason = REASON.fullmatch(above)
            language = token.info.strip().partition(" ")[0]
            found.append(
                Block(
                    document,
                    token.map[0] + 1,
                    language,
                    token.content,
                    reason[1] if reason else None,
                )
            )
    return found


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]
SHELL = [block for block in BLOCKS if block.language in COMMANDS]
RUN_SHELL = [block for block in SHELL if block.reason is None]
PYTHON = [block for block in BLOCKS if block.language == "python"]
PYTHON_DOCUMENTS = sorted({block.document for block in PYTHON if block.reason is None})


Done = dict[str, "Future[subprocess.CompletedProcess[str]]"]


def environment() -> dict[str, str]:
    """A reader's: the package on the path, no key, no model hub."""
    kept = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader would stand: the examples, a model of their own, and a run that is done."""
    folder = tmp_path_factory.mktemp("reader")
    for example in EXAMPLES:
        shutil.copy(example, folder)
    save_tiny(folder / "model", max_position_embeddings=16384)
    store = RunStore.create(folder / "runs" / "quickstart", yaml.safe_dump(CONFIG))
    for step in (1, 2):
        play(store, step, [agreeing(step), disagreeing(step, episode=1)])
    store.close()
    return folder


# -- what is fenced ----------------------------------------------------------------------------


def test_every_block_says_what_it_is() -> None:
    for block in BLOCKS:
        assert block.language in (*COMMANDS, *NOT_RUN, "python"), block.name
        if block.language in NOT_RUN:
            assert not re.search(r"^\$ ", block.text, re.MULTILINE), f"{block.name} holds commands"


def test_most_of_python_and_of_the_commands_of_this_package_are_run() -> None:
    own = [block for block in SHELL if re.search(r"\$ (deliberation|python) ", block.text)]
    for blocks in (own, PYTHON):
        assert 2 * sum(block.reason is None for block in blocks) > len(blocks) > 2


def shell_call(block: Block) -> tuple[str, ...]:
    return ("bash", "-euo", "pipefail", "-c", block.commands())


def python_call(document: Path) -> tuple[str, ...]:
    """One process for a document: later blocks use what earlier ones made."""
    parts = [
        (block.name, "\n" * block.line + block.text)
        for block in PYTHON
        if block.document == document and block.reason is None
    ]
    lines = (
        "space = {}",
        f"for part in {parts!r}:",
        "    exec(compile(*part[::-1], 'exec'), space)",
    )
    return (sys.executable, "-c", "\n".join(lines))


@pytest.fixture(scope="module")
def done(place: Path) -> Iterator[Done]:
    """Everything that is to be run, by name: two at a time, since most of it is importing."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = {
            document.name: pool.submit(run, *python_call(document), cwd=place)
            for document in PYTHON_DOCUMENTS
        }
        for block in RUN_SHELL:
            # Contributors stand in the checkout, users in a folder of their own.
            cwd = ROOT if block.document.name == "CONTRIBUTING.md" else place
            futures[block.name] = pool.submit(run, *shell_call(block), cwd=cwd)
        yield futures
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", [block.name for block in RUN_SHELL])
def test_commands_run_as_they_stand(name: str, done: Done) -> None:
    result = done[name].result()
    assert result.returncode == 0, f"{name}\n{result.stdout}\n{result.stderr}"


@pytest.mark.parametrize("name", [document.name for document in PYTHON_DOCUMENTS])
def test_python_runs_from_top_to_bottom(name: str, done: Done) -> None:
    result = done[name].result()
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example: Path, place: Path) -> None:
    result = run(sys.executable, example.name, cwd=place)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


# -- what is named -----------------------------------------------------------------------------


def sections() -> dict[str, tuple[str, str]]:
    """Of docs/api.md: heading and text for each name."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^(?=##)", text, flags=re.MULTILINE):
        heading, _, body = part.partition("\n")
        if name := re.match(r"### `(\w+)", heading):
            assert name[1] not in found, f"{name[1]} is documented twice"
            found[name[1]] = (heading.removeprefix("### ").strip("`"), body)
    return found


SECTIONS = sections()


def test_the_api_page_documents_every_public_name_and_no_other() -> None:
    assert set(SECTIONS) == set(deliberation.__all__)


@pytest.mark.parametrize("name", [name for name, (title, _) in SECTIONS.items() if "(" in title])
def test_a_signature_on_the_api_page_is_the_real_one(name: str) -> None:
    (function,) = ast.parse(f"def {SECTIONS[name][0]}: ...").body
    assert isinstance(function, ast.FunctionDef)
    real = inspect.signature(getattr(deliberation, name)).parameters.values()
    written = [argument.arg for argument in function.args.args]
    assert written == [p.name for p in real if p.kind is p.POSITIONAL_OR_KEYWORD][: len(written)]
    keywords = [argument.arg for argument in function.args.kwonlyargs]
    assert keywords == [p.name for p in real if p.kind is p.KEYWORD_ONLY]
    public = [p for p in real if not p.name.startswith("_") and p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(written) == len(public) or name == "DilemmaEnvironment"
    needed = len(written) - len(function.args.defaults)
    assert needed == sum(p.default is p.empty for p in public)


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_the_api_page_names_every_field_and_method(name: str) -> None:
    if name == "ConsoleProgress":  # its methods are called by the trainer alone
        return
    value = getattr(deliberation, name)
    text = " ".join(SECTIONS[name])
    missing = [member for member in members(value) if not re.search(rf"\b{member}\b", text)]
    assert not missing, f"{name}: {missing}"


def members(value: object) -> set[str]:
    if not isinstance(value, type):
        return set()
    if issubclass(value, Enum):
        return set(value.__members__)
    found = {name for name in vars(value) if not name.startswith("_")}
    if issubclass(value, BaseModel):
        found = {name for name in found if not name.startswith("model_")} | set(value.model_fields)
    if is_dataclass(value):
        found |= {field.name for field in fields(value) if not field.name.startswith("_")}
    return found


def test_the_configuration_page_is_up_to_date() -> None:
    """Else: python scripts/configuration_reference.py"""
    assert TARGET.read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("head", ["agreement", "ca"])
def test_the_figures_of_the_embedded_judge_are_those_of_its_head_files(head: str) -> None:
    figures = json.loads((ROOT / "judge" / "data" / f"{head}_head.json").read_text())
    page = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")
    for name in figures["held_out"]:
        pair = (figures["cross_validated"][name], figures["held_out"][name])
        row = rf"\| `{name}` \|.*\| {pair[0]:g} \| {pair[1]:g} \|"
        assert re.search(row, page), f"{head}: {name} is {pair}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = {"agreement": ("auc", "auc_hard"), "ca": ("spearman", "mean_absolute_error")}
    for name in told[head]:
        assert f"{figures['held_out'][name]:.2f}" in readme


# -- what is pointed to ------------------------------------------------------------------------


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    tokens = MarkdownIt().parse(document.read_text(encoding="utf-8"))
    titles = [
        tokens[place + 1].content
        for place, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(document: Path) -> list[str]:
    found = []
    for token in MarkdownIt().enable("table").parse(document.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = child.attrs.get("href" if child.type == "link_open" else "src")
            if target and child.type in ("link_open", "image"):
                found.append(str(target))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_relative_links_and_pictures_exist(document: Path) -> None:
    for link in links(document):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), f"{document.name}: {link}"
        assert target.is_relative_to(ROOT), f"{document.name}: {link} leads out of the repository"
        if anchor:
            assert anchor in anchors(target), f"{document.name}: {link}"


def test_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "images").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 300_000, picture.name
        assert picture.read_bytes().startswith(b"\x89PNG")


def tracked_texts() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    done = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


def test_no_file_names_a_path_or_the_name_of_a_machine() -> None:
    """`/home/me` is nobody's."""
    folders = "|".join(("work", "root", "tmp", "home", "Users", "mnt", "scratch"))
    machine_path = re.compile(rf"(?<![\w.\-~}}])/(?:{folders})/(?!me\b)[\w.]")
    host = socket.gethostname()
    # A name such as "trainer" is a word like any other.
    telling = len(host) > 5 and any(character.isdigit() for character in host)
    for path in tracked_texts():
        text = path.read_text(encoding="utf-8", errors="replace")
        found = machine_path.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found}"
        assert not (telling and host in text), f"{path.relative_to(ROOT)} names this machine"
