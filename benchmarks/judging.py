"""What a judge behind a server adds to the client library: python benchmarks/judging.py

A server on this machine answers each request after 200 ms. The same questions are asked at 64 in
flight, once through the judge (prompt, cache, strict reading, ledger) and once through the bare
client, in turn. Prints verdicts a second beside the ideal 64 / 0.2 s = 320, and the CPU time that a
verdict costs beyond the client's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import openai

sys.path.insert(0, str(Path(__file__).parents[1]))

from deliberation.judge import Judge, JudgeConfig
from deliberation.judge.dossier import score_dossier
from deliberation.judge.rubrics import load_rubrics
from deliberation.judge.verdict import ScoreAnswer
from deliberation.judging import ResolutionCase
from deliberation.remote.client import strict_schema
from tests.helpers.judges import case
from tests.helpers.stub_server import stub_server

LATENCY_S = 0.2
IN_FLIGHT = 64
ANSWERS = "tests.test_judge_remote:answers"


def cases(count: int, label: str) -> list[ResolutionCase]:
    text = "From Monday the library opens on three late nights, number {} of {}."
    return [case(text.format(number, label)) for number in range(count)]


async def through_the_judge(url: str, folder: Path, count: int, label: str) -> tuple[float, float]:
    """(verdicts a second, CPU seconds a verdict)"""
    config = JudgeConfig(
        model=f"openai:m@{url}/v1",
        concurrency=IN_FLIGHT,
        cache_path=str(folder / f"{label}.sqlite"),
    )
    judge = Judge(config)
    judge.keep_ledger(folder / f"{label}.jsonl")
    await judge.open()
    asked = cases(count, label)
    wall, cpu = time.perf_counter(), time.process_time()
    scores = await asyncio.gather(*(judge.score(one) for one in asked))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert all(score.value == 4.0 for score in scores)
    await judge.close()
    return count / wall, cpu / count


async def through_the_client(url: str, count: int, label: str) -> tuple[float, float]:
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    slots = asyncio.Semaphore(IN_FLIGHT)
    rubric = load_rubrics().collective_agency
    schema = strict_schema(ScoreAnswer.model_json_schema())
    requests = [list(score_dossier(rubric, one).messages()) for one in cases(count, label)]

    async def ask(messages: list[dict[str, str]]) -> None:
        async with slots:
            await client.chat.completions.create(
                model="m",
                messages=messages,  # type: ignore[arg-type]
                max_tokens=512,
                temperature=0.0,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "score", "schema": schema, "strict": True},
                },
            )

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask(messages) for messages in requests))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await client.close()
    return count / wall, cpu / count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--verdicts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.pop("OPENAI_API_KEY", None)
    ours, theirs = [], []
    with stub_server(ANSWERS, latency_s=LATENCY_S) as server, tempfile.TemporaryDirectory() as at:
        for number in range(options.rounds):
            label = f"round-{number}"
            ours.append(
                asyncio.run(through_the_judge(server.url, Path(at), options.verdicts, label))
            )
            theirs.append(asyncio.run(through_the_client(server.url, options.verdicts, label)))
    ideal = IN_FLIGHT / LATENCY_S
    for name, found in (("judge", ours), ("client", theirs)):
        speed = statistics.median(speed for speed, _ in found)
        cpu = statistics.median(cpu for _, cpu in found)
        print(
            f"{name:<8}{speed:6.0f} verdicts/s ({speed / ideal:.0%} of the ideal {ideal:.0f}), "
            f"{1000 * cpu:.2f} ms of CPU a verdict"
        )
    more = statistics.median(a - b for (_, a), (_, b) in zip(ours, theirs, strict=True))
    print(f"the judge's own share: {1000 * more:.2f} ms of CPU a verdict")


if __name__ == "__main__":
    main()
