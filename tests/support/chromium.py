"""A real browser without a window, spoken to over two pipes (Chromium's DevTools protocol)."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Seconds that one answer may take on a busy machine.
PATIENCE = 120


def program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page. Requests that it makes are noted in `requests`."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        self.requests, self._loaded = [], False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._next()

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screen(self, width: int, *, scheme: str = "light", media: str = "screen") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                  deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], until - time.monotonic())
            piece = os.read(self._receive, 1 << 20) if ready else b""
            assert piece, "the browser does not answer"
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        self._loaded |= message.get("method") == "Page.loadEventFired"
        return message


@contextmanager
def started(path: str) -> Iterator[Browser]:
    """A browser that ends with the block; it has a folder of its own."""
    (theirs, send), (receive, answers) = os.pipe(), os.pipe()

    def numbered() -> None:
        # The protocol has 3 and 4, which may be taken: copied out of the way first.
        first, second = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, answers))
        os.dup2(first, 3)
        os.dup2(second, 4)

    folder = tempfile.mkdtemp()
    command = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
               f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
    process = subprocess.Popen(
        command, preexec_fn=numbered, close_fds=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    os.close(answers)
    try:
        yield Browser(send, receive)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(send)
        os.close(receive)
        shutil.rmtree(folder, ignore_errors=True)
