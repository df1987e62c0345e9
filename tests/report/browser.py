# SPDX-License-Identifier: MIT
"""Headless Chromium, driven over its debugging pipe with Python alone.

Messages are JSON, each followed by a NUL. The browser reads from its
descriptor 3 and writes to its descriptor 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

ANSWER_S = 60.0  # long, for busy machines
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """Returns the path of the browser; the variable CHROMIUM can name another
    one."""
    for name in (os.environ.get("CHROMIUM", ""), *NAMES):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


def _high(descriptor: int) -> int:
    """Returns a duplicate above the descriptors that the browser uses."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 5)
    os.close(descriptor)
    return high


class Browser:
    """One page of one browser; errors of the page are kept in `said`."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        read, self._write = (_high(end) for end in os.pipe())
        self._read, write = (_high(end) for end in os.pipe())
        options = [
            "--headless=new",
            "--no-sandbox",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--hide-scrollbars",
            f"--user-data-dir={self._folder}",
        ]
        self._process = subprocess.Popen(
            [
                "sh",
                "-c",
                f'exec "$@" 3<&{read} 4>&{write}',
                "sh",
                program,
                *options,
                "about:blank",
            ],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._waiting = b""
        self._n = 0
        self._session: str | None = None
        self.said: list[str] = []
        self._events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one for one in targets if one["type"] == "page")
        self._session = self.call(
            "Target.attachToTarget", flatten=True, targetId=page["targetId"]
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def close(self) -> None:
        """Ends the browser, whatever it is doing."""
        os.close(self._write)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._waiting += part
        text, self._waiting = self._waiting.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(json.dumps(params["entry"]))
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "about:")):
                self.said.append("asks for " + url)
        if method:
            self._events.append(message)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the browser's protocol; returns the answer."""
        self._n += 1
        message = {"id": self._n, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text) :]
        until = time.monotonic() + ANSWER_S
        while True:
            answer = self._message(until)
            if answer.get("id") != self._n:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result

    def open(self, path: str, width: int, scheme: str = "light") -> None:
        """Loads a file with a window width and a colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self._events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        until = time.monotonic() + ANSWER_S
        while not any(
            event["method"] == "Page.loadEventFired" for event in self._events
        ):
            self._message(until)
        self.run(
            "new Promise(done => requestAnimationFrame(() =>"
            " setTimeout(done, 60)))"
        )

    def worked_ms(self) -> float:
        """CPU time of the page's main thread since it was opened, in ms; it
        does not grow on a busy machine."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return 1000 * next(
            one["value"] for one in metrics if one["name"] == "ThreadTime"
        )

    def run(self, code: str) -> Any:
        """Returns the value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate",
            expression=code,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Presses and releases a key."""
        codes = {
            "Tab": 9,
            "Enter": 13,
            "Escape": 27,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
        }
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **text,
            )

    def point(self, x: float, y: float, click: bool = False) -> None:
        """Moves the pointer; clicks if asked to."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def picture(self, path: str) -> None:
        """Saves the whole page as a PNG."""
        answer = self.call(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={
                "x": 0,
                "y": 0,
                "scale": 1,
                "width": self.run("innerWidth"),
                "height": self.run("document.documentElement.scrollHeight"),
            },
        )
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
