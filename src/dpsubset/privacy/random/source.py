"""Sources of random bits.

`SystemSource` is the operating system's cryptographic generator. `SeededSource` is a reproducible
stream for tests and simulation. Anyone who knows the seed knows the noise, so a release with it is
not private, and says so.
"""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

_CHUNK = 512  # bytes fetched at a time


class Source(Protocol):
    """A stream of independent fair bits."""

    @property
    def secure(self) -> bool:
        """Whether the bits are unpredictable."""

    def bits(self, count: int) -> int:
        """The next ``count`` bits as an integer in [0, 2**count)."""


class _Buffered:
    """Hands out bits from chunks of bytes; each bit is used once."""

    def __init__(self) -> None:
        self._pool = 0
        self._left = 0

    def _fetch(self, size: int) -> bytes:
        raise NotImplementedError

    def bits(self, count: int) -> int:
        while self._left < count:
            size = max(_CHUNK, (count - self._left + 7) // 8)
            self._pool |= int.from_bytes(self._fetch(size), "little") << self._left
            self._left += 8 * size
        value = self._pool & ((1 << count) - 1)
        self._pool >>= count
        self._left -= count
        return value


class SystemSource(_Buffered):
    """Bits from the operating system; safe to carry across a fork."""

    secure = True

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()

    def bits(self, count: int) -> int:
        if os.getpid() != self._process:
            # A forked child must not reuse its parent's buffered bits.
            self._pool = self._left = 0
            self._process = os.getpid()
        return super().bits(count)

    def _fetch(self, size: int) -> bytes:
        return os.urandom(size)


class SeededSource(_Buffered):
    """Reproducible bits: SHAKE-256 of the seed and a counter. For tests and simulation only."""

    secure = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = int(seed)
        self._counter = 0

    def _fetch(self, size: int) -> bytes:
        self._counter += 1
        label = f"dpsubset insecure seed {self._seed} block {self._counter}"
        return hashlib.shake_256(label.encode()).digest(size)
