"""Verdicts that were paid for once: a SQLite file that several processes share.

A verdict's key holds everything that it depends on: what is asked in full, the rubric, the schema,
where and whom it is asked, with which settings, and the sample's index. Failures are never kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from deliberation.disk import on_network_file_system
from deliberation.errors import JudgeError

log = logging.getLogger(__name__)

BUSY_S = 30.0
"""How long to wait for another process that writes."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT PRIMARY KEY,
    reply TEXT NOT NULL,
    created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID
"""


def default_cache_path() -> Path:
    """In the user's cache directory."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "deliberation" / "verdicts.sqlite"


def verdict_key(parts: Mapping[str, Any]) -> str:
    """A key of everything that `parts` holds, whatever the order of its names."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class VerdictCache:
    """Replies by key.

    Args:
        path: the file, which is made if need be; None keeps the replies of this object's life.

    Raises:
        JudgeError: the file cannot be opened, or is no cache.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path).expanduser()
        self.hits = 0
        self.misses = 0
        self.shared = 0
        """Questions that waited for the same one of somebody else in this process."""
        self._in_flight: dict[str, asyncio.Future[str | None]] = {}
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        name = ":memory:"
        if self.path is not None:
            name = str(self.path)
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise JudgeError(
                    f"judge.cache_path={self.path}: the folder cannot be made "
                    f"({error.strerror}); name another place."
                ) from None
        try:
            # Used from the event loop's thread alone, which need not be the one that opens it.
            database = sqlite3.connect(
                name, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            if self.path is not None and on_network_file_system(self.path.parent):
                # Write-ahead logs need shared memory, which network file systems don't have.
                log.warning(
                    "%s: on a network file system, where the cache is slow and locks may fail; "
                    "set judge.cache_path to a local disk.",
                    self.path,
                )
            else:
                database.execute("PRAGMA journal_mode=WAL")
                # What is committed outlives this process; only a power cut may take the last ones.
                database.execute("PRAGMA synchronous=NORMAL")
            database.execute(_SCHEMA)
        except sqlite3.Error as error:
            raise JudgeError(
                f"judge.cache_path={self.path}: cannot be used as a cache ({error}); move the file "
                "away or name another place."
            ) from None
        return database

    def get(self, key: str) -> str | None:
        row = self._database.execute("SELECT reply FROM verdicts WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, reply: str) -> None:
        """Keep a reply; committed when this returns."""
        try:
            self._database.execute(
                "INSERT OR REPLACE INTO verdicts (key, reply) VALUES (?, ?)", (key, reply)
            )
        except sqlite3.Error as error:  # a full disk, or a lock that was never let go
            log.warning("%s: a verdict could not be kept (%s).", self.path, error)

    async def through(self, key: str, ask: Callable[[], Awaitable[str | None]]) -> str | None:
        """The reply that is kept, or that of `ask`, which is kept if there is one.

        While one caller asks, others with the same key wait for its reply. Should it fail (None) or
        be cancelled, they ask for themselves, one after the other.
        """
        while True:
            kept = self.get(key)
            if kept is not None:
                self.hits += 1
                return kept
            waiting = self._in_flight.get(key)
            if waiting is None or waiting.get_loop() is not asyncio.get_running_loop():
                break
            self.shared += 1
            reply = await asyncio.shield(waiting)
            if reply is not None:
                return reply
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        self.misses += 1
        reply = None
        try:
            reply = await ask()
            if reply is not None:
                self.put(key, reply)
        finally:
            if self._in_flight.get(key) is future:
                del self._in_flight[key]
            if not future.done():
                future.set_result(reply)
        return reply

    @property
    def hit_share(self) -> float | None:
        """Share of the questions that cost nothing; None before the first."""
        asked = self.hits + self.shared + self.misses
        return (self.hits + self.shared) / asked if asked else None

    def close(self) -> None:
        self._database.close()
