"""An OpenAI-compatible server in a process of its own that fails as it is told.

What it does is written in the last message of a request, as `stub=PLAN#ID`, and may depend on how
often this ID was asked; a request without that takes the next of the server's own plans in turn.
The replies that are no fault come from a function `answers(body) -> str`, named `module:function`.

`GET /stats` gives what it saw: requests, tries by ID, most requests in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

PLAN = re.compile(r"stub=([a-z0-9-]+)#([\w-]+)")
FIRST_TRY = {
    "429-seconds": (429, {"retry-after": "1"}),
    "429-milliseconds": (429, {"retry-after-ms": "300"}),
    "429-zero": (429, {"retry-after": "0"}),
    "429-silent": (429, {}),
    "500-once": (500, {}),
    "503-once": (503, {"retry-after": "1"}),
}
ALWAYS = {
    "429-long": (429, {"retry-after": "900"}, None),
    "429-always": (429, {}, None),
    "500-always": (500, {}, None),
    "quota": (429, {}, "insufficient_quota"),
    "key": (401, {}, "invalid_api_key"),
    "long": (400, {}, "context_length_exceeded"),
}
TEXTS = {
    "fenced": "Here it is:\n```json\n{}\n```",
    "prose": "My view: {} – hope that helps",
}
BROKEN = {
    "nonsense": "I would rather not say.",
    "nan": '{"score": NaN, "reason": "x"}',
    "empty": "",
}


@dataclass
class Seen:
    requests: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)


@dataclass
class StubServer:
    answers: Callable[[dict[str, Any]], str]
    latency_s: float = 0.0
    refuses: frozenset[str] = frozenset()
    """Response formats and parameters that are answered with a 400."""
    plans: tuple[str, ...] = ("ok",)
    seen: Seen = field(default_factory=Seen)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1])) if length else b""
        if head.startswith("GET /stats"):
            seen = {**vars(self.seen), "tries": dict(self.seen.tries)}
            self._send(writer, 200, {**seen, "formats": dict(self.seen.formats)})
            return True
        self.seen.requests += 1
        self.seen.in_flight += 1
        self.seen.most_in_flight = max(self.seen.most_in_flight, self.seen.in_flight)
        try:
            return await self._answer(json.loads(body), writer)
        finally:
            self.seen.in_flight -= 1

    async def _answer(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        told = PLAN.search(body["messages"][-1]["content"])
        number = self.seen.requests
        own = self.plans[(number - 1) % len(self.plans)]
        plan, id = (told[1], told[2]) if told else (own, f"request-{number}")
        number = self.seen.tries[id] = self.seen.tries[id] + 1
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        wanted = body.get("response_format", {}).get("type", "text")
        refused = self.refuses & {wanted, *body}
        if refused:
            name = sorted(refused)[0]
            if name.startswith("json"):
                message = f"'response_format' of type '{name}' is not supported"
            else:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
            return self._problem(writer, 400, {}, None, message)
        self.seen.formats[wanted] += 1
        if plan == "hang":
            await asyncio.sleep(3600)
        if plan == "reset-once" and number == 1:
            writer.transport.abort()
            return False
        if plan == "429-date" and number == 1:
            return self._problem(writer, 429, {"retry-after": formatdate(time.time() + 2)})
        if plan in FIRST_TRY and number == 1:
            return self._problem(writer, *FIRST_TRY[plan])
        if plan in ALWAYS:
            return self._problem(writer, *ALWAYS[plan])
        self._send(writer, 200, self._completion(plan, number, body))
        return True

    def _completion(self, plan: str, number: int, body: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.answers(body)}
        finish, thinking = "stop", 0
        if plan in TEXTS:
            message["content"] = TEXTS[plan].replace("{}", message["content"])
        elif plan in BROKEN:
            message["content"] = BROKEN[plan]
        elif plan == "refusal":
            message |= {"content": "", "refusal": "No."}
        elif plan == "filter":
            message["content"], finish = None, "content_filter"
        elif plan == "truncated" or (plan == "truncated-once" and number == 1):
            message["content"], finish = message["content"][:-6], "length"
        elif plan == "thinking":
            message["content"], finish, thinking = "", "length", 64
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": f"{body['model']}-2024-07-18",
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "total_tokens": 1100,
                "prompt_tokens_details": {"cached_tokens": 200},
                "completion_tokens_details": {"reasoning_tokens": thinking},
            },
        }

    def _problem(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        headers: dict[str, str],
        code: str | None = None,
        message: str = "told to fail; the key was sk-planted-in-an-error",
    ) -> bool:
        error = {"error": {"message": message, "code": code, "type": "x", "param": None}}
        self._send(writer, status, error, headers)
        return True

    def _send(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        content: dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> None:
        data = json.dumps(content).encode()
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{extra}"
        writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)


@dataclass(frozen=True)
class Running:
    """A stub server that runs elsewhere."""

    url: str

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=10) as reply:
            stats: dict[str, Any] = json.load(reply)
        return stats


@contextlib.contextmanager
def stub_server(
    answers: str,
    *,
    latency_s: float = 0.0,
    refuses: tuple[str, ...] = (),
    plans: tuple[str, ...] = ("ok",),
) -> Iterator[Running]:
    """Run one until the block ends. `answers` is `module:function`."""
    command = [sys.executable, "-m", "tests.helpers.stub_server", answers]
    command += ["--latency", str(latency_s), "--refuses", ",".join(refuses)]
    command += ["--plans", ",".join(plans)]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Running(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("answers")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--refuses", default="")
    parser.add_argument("--plans", default="ok")
    options = parser.parse_args()
    module, _, name = options.answers.partition(":")
    stub = StubServer(
        getattr(importlib.import_module(module), name),
        options.latency,
        frozenset(filter(None, options.refuses.split(","))),
        tuple(options.plans.split(",")),
    )
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
