"""The programs of the tests: services, and the server that has the timelines."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SUPPORT = PACKAGE.parents[1] / "Support"
SERVICE = pathlib.Path(os.environ.get("SERVICE", PACKAGE / ".build" / "debug" / "TimelineService"))

ROUNDS = os.environ.get("MOMENTS_ROUNDS")


def rounds(default: int, full: int) -> int:
    """Returns how much a test does: `MOMENTS_ROUNDS` in the environment is `full` or a number."""
    return full if ROUNDS == "full" else int(ROUNDS or default)


LONGEST_WAIT = 120.0
"""The limit, in seconds, of waits that have no limit of their own."""

LOOPBACK = "http://127.0.0.1"


def wait_until(condition, description: str, seconds: float = LONGEST_WAIT) -> None:
    """Waits until a condition holds, which `description` names in the failure."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"Not within {seconds:.0f} seconds: {description}")
        time.sleep(0.02)


class Program:
    """A process that listens on the loopback interface of its machine, and can be stopped and started again."""

    def __init__(self, port: int, health: str, *arguments: str, machine: str | None = None) -> None:
        self.address = f"{LOOPBACK}:{port}"
        self._health = health
        self._on_machine = ["ip", "netns", "exec", machine] if machine else []
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # Standard input stays open, because the server ends when it is closed.
        self._process = subprocess.Popen(
            [*self._on_machine, *self._arguments],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: self._process.poll() is not None or self._is_there(), f"{self._arguments[0]} answers")
        if self._process.poll() is not None:
            raise AssertionError(f"{self._arguments} ended with {self._process.returncode}")

    def _is_there(self) -> bool:
        try:
            return self.get(self._health) is not None
        except (OSError, subprocess.CalledProcessError):
            return False

    def connection(self) -> http.client.HTTPConnection:
        """A connection from this machine, to be closed by the caller."""
        return http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)

    def get(self, path: str) -> bytes:
        return self.request("GET", path)[1]

    def request(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        """Makes a request on the program's machine; returns the status and the body."""
        if not self._on_machine:
            with urllib.request.urlopen(self.address + path, timeout=10) as response:
                return response.status, response.read()
        fields = [part for name, value in headers.items() for part in ("--header", f"{name.replace('_', '-')}: {value}")]
        data = [] if body is None else ["--data", json.dumps(body)]
        output = subprocess.run(
            [*self._on_machine, "curl", "--silent", "--show-error", "--max-time", "100", "--request", method,
             "--write-out", "\n%{http_code}", *fields, *data, self.address + path],
            check=True, capture_output=True,
        ).stdout
        text, _, status = output.rpartition(b"\n")
        return int(status), text

    def stop(self) -> int:
        """Asks the process to end, and returns its status."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(LONGEST_WAIT)
        if self._process.stdin:
            self._process.stdin.close()
        self._process = None
        return status


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def server(
    port: int, state: pathlib.Path, machine: str | None = None, data: pathlib.Path = SUPPORT / "bff" / "data.json"
) -> Program:
    """The server of the timelines, which keeps its state in a file."""
    return Program(
        port, "/control/health", sys.executable, str(SUPPORT / "bff" / "server.py"), "--port", str(port),
        "--state", str(state), "--data", str(data), machine=machine,
    )


def service(port: int, store: str, upstream: str, machine: str | None = None) -> Program:
    return Program(
        port, "/health", str(SERVICE), "--port", str(port), "--store", store, "--upstream", upstream, machine=machine)


def likes(of: Program) -> list[dict]:
    """The likes that a server has made, in order."""
    return [
        record for record in json.loads(of.get("/control/requests"))
        if record["operation"] == "updateMomentLike" and record["effect"] == "applied"
    ]
