"""Stable keys: randomness belongs to the thing it is drawn for, not to the moment it is drawn."""

import hashlib

KeyPart = str | int


def stable_key(*parts: KeyPart) -> int:
    """A 64-bit key that depends on `parts` alone: the same on every machine, run and Python.

    Unlike `hash()`, which is salted per process. Parts are length-prefixed and typed, so that
    `("ab", "c")` differs from `("a", "bc")` and `1` from `"1"`.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        encoded = str(part).encode()
        digest.update(f"{type(part).__name__}:{len(encoded)}:".encode() + encoded)
    return int.from_bytes(digest.digest(), "big")


def stable_order(count: int, *parts: KeyPart) -> list[int]:
    """A permutation of `range(count)` that depends on `parts` alone."""
    return sorted(range(count), key=lambda index: stable_key(*parts, index))
