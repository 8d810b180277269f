"""`deliberation data check` on many synthetic rows: seconds, memory, and planted duplicates found.

    python benchmarks/data_check.py [--rows 100000] [--planted 200]

The rows are written into a temporary folder by a seeded sampler of words, each different from all
others. Half of the planted rows are copies in which one word in twenty is changed; the other
half are fillings of a template of their own, which share a skeleton and hardly any words. Time is
both by the clock and of the CPU, since the clock alone says little on a machine that is shared.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from pathlib import Path

from deliberation.dilemmas import VALUES
from deliberation.dilemmas.check import check_data
from deliberation.nearness.function_words import FUNCTION_WORDS

CLASSES = ("professional", "interpersonal", "everyday")
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pla", "gre", "tri", "sno")


class Sampler:
    """Sentences of function words and invented words, about half of each as in English."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.small = sorted(FUNCTION_WORDS)
        self.large = sorted({self.word() for _ in range(30_000)})

    def word(self) -> str:
        return "".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 4)))

    def words(self, count: int) -> list[str]:
        pick = self.random
        return [
            pick.choice(self.small) if pick.random() < 0.45 else pick.choice(self.large)
            for _ in range(count)
        ]

    def sentence(self, count: int) -> str:
        return " ".join(self.words(count)).capitalize() + "."

    def situation(self) -> str:
        return " ".join(self.sentence(self.random.randint(8, 24)) for _ in range(6))

    def changed(self, text: str) -> str:
        """One word in twenty is another."""
        return " ".join(
            self.random.choice(self.large) if self.random.random() < 0.05 else word
            for word in text.split()
        )

    def filled(self, template: str) -> str:
        """Every invented word of the template is another one."""
        return " ".join(
            word if word.strip(".").lower() in FUNCTION_WORDS else self.refill(word)
            for word in template.split()
        )

    def refill(self, word: str) -> str:
        new = self.random.choice(self.large)
        return (new.capitalize() if word[0].isupper() else new) + ("." if word[-1] == "." else "")

    def row(self, id: int, situation: str) -> dict[str, object]:
        stakeholders = [
            {
                "name": " ".join(self.words(2)),
                "gains": " ".join(self.words(6)),
                "loses": " ".join(self.words(6)),
            }
            for _ in range(3)
        ]
        return {
            "id": f"row-{id}",
            "class": self.random.choice(CLASSES),
            "domain": self.random.choice(self.large[:200]),
            "title": " ".join(self.words(4)),
            "situation": situation,
            "question": " ".join(self.words(12)).capitalize() + "?",
            "stakeholders": stakeholders,
            "values": self.random.sample(sorted(VALUES), 2),
            "constraints": [self.sentence(10), self.sentence(10)],
        }


def write(path: Path, count: int, planted: int) -> dict[str, set[str]]:
    """The file; ids of the planted rows by the check that must find them."""
    sampler = Sampler(seed=1)
    ids: dict[str, set[str]] = {"near words": set(), "near skeletons": set()}
    originals: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            left = count - number
            if left <= planted:
                by_words = left % 2 == 0
                change = sampler.changed if by_words else sampler.filled
                situation = change(originals[left])
                name = "near words" if by_words else "near skeletons"
                ids[name].add(f"row-{number}")
            else:
                situation = sampler.situation()
                if len(originals) <= planted:
                    originals.append(situation)
            row = sampler.row(number, situation)
            file.write(json.dumps(row) + "\n")
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--planted", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        ids = write(path, arguments.rows, arguments.planted)
        print(f"{arguments.rows} rows, {path.stat().st_size / 2**20:.0f} MiB")
        began, began_cpu = time.perf_counter(), time.process_time()
        report = check_data([path])
        wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{wall:.1f} s by the clock, {cpu:.1f} s of CPU, {peak:.2f} GiB at the peak")
    for check in report.checks:
        if check.name in ids:
            found = {finding.detail.split('"')[1] for finding in check.findings}
            planted = ids[check.name]
            print(
                f"{check.name}: {len(found & planted)} of {len(planted)} planted found, "
                f"{len(found - planted - set().union(*ids.values()))} others"
            )


if __name__ == "__main__":
    main()
