"""The test harness: the server process, and a client for it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Optional
from urllib.parse import urlencode, urlsplit

FOLDER = Path(__file__).parent
TIMEOUT = 30
"""The timeout of each wait, in seconds."""

SELECTION = """{
  userDetails { id name avatar backgroundImage }
  moments {
    id userDetails { name avatar } type title url photos createdDate
    %s
  }
}"""

QUERY = """query getMomentsDetailsByUserID($userID: ID!, $withLikes: Boolean!) {
  getMomentsDetailsByUserID(userID: $userID) %s
}""" % (SELECTION % "isLiked @include(if: $withLikes) likes @include(if: $withLikes) { id avatar }")

MUTATION = """mutation updateMomentLike($momentID: ID!, $userID: ID!, $isLiked: Boolean!) {
  updateMomentLike(momentID: $momentID, userID: $userID, isLiked: $isLiked) %s
}""" % (SELECTION % "isLiked likes { id avatar }")


PAGE_QUERY = """query page($userID: ID!, $first: Int, $after: String) {
  getMomentsDetailsByUserID(userID: $userID, first: $first, after: $after) {
    moments { id title createdDate }
    pageInfo { endCursor hasNextPage }
  }
}"""


def page(user_id: str, first: Optional[int] = None, after: Optional[str] = None) -> dict[str, Any]:
    return {"query": PAGE_QUERY, "variables": {"userID": user_id, "first": first, "after": after}}


def timeline(user_id: str, with_likes: bool = True) -> dict[str, Any]:
    return {"query": QUERY, "variables": {"userID": user_id, "withLikes": with_likes}}


def like(moment_id: str, is_liked: bool = True, user_id: str = "0") -> dict[str, Any]:
    return {"query": MUTATION, "variables": {"momentID": moment_id, "userID": user_id, "isLiked": is_liked}}


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def start(*arguments: str, environment: Optional[Mapping[str, str]] = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(FOLDER / "server.py"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def port_of(process: subprocess.Popen[str]) -> int:
    """Returns the port in the line that the server prints when it is ready."""
    assert process.stdout
    port = urlsplit(process.stdout.readline().removeprefix("listening on ").strip()).port
    assert port
    return port


class ClientTestCase(unittest.TestCase):
    """A client of the server on `port`."""

    port: int

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        self.addCleanup(connection.close)
        return connection

    def send(
        self,
        body: object,
        headers: Optional[Mapping[str, str]] = None,
        method: str = "POST",
        path: str = "/graphql",
        connection: Optional[http.client.HTTPConnection] = None,
    ) -> Response:
        connection = connection or self.connect()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return Response(response.status, dict(response.headers), response.read())

    def control(self, name: str, body: object) -> Response:
        return self.send(body, path=f"/control/{name}")

    def arm(self, fault: str, **arguments: Any) -> None:
        self.assertEqual(self.control("faults", {"fault": fault, **arguments}).status, 200)

    def requests(self, **counts: int) -> list[dict[str, Any]]:
        """Returns the records, after waiting for the numbers `count`, `settled` and `disconnected`."""
        response = self.send(b"", method="GET", path=f"/control/requests?{urlencode(counts)}")
        self.assertEqual(response.status, 200, response.body)
        records: list[dict[str, Any]] = response.json
        return records

    def outcomes(self, **counts: int) -> list[Any]:
        return [record["outcome"] for record in self.requests(**counts)]

    def effects(self) -> list[Any]:
        return [record["effect"] for record in self.requests()]

    def await_gate(self, gate: str, waiting: int = 1) -> None:
        """Returns when at least `waiting` requests wait at the gate."""
        response = self.send(b"", method="GET", path=f"/control/gates?gate={gate}&waiting={waiting}")
        self.assertEqual(response.status, 200, response.body)

    def open_gate(self, gate: str) -> int:
        """Opens the gate, and returns the number of requests that waited at it."""
        response = self.control("gates", {"open": gate})
        self.assertEqual((response.status, response.json["opened"]), (200, gate))
        passed: int = response.json["passed"]
        return passed

    def likes(self, moment_id: str, user_id: str = "0") -> list[str]:
        """Returns the ids of the users who like the moment, by sending an additional request."""
        moments = self.send(timeline(user_id)).json["data"]["getMomentsDetailsByUserID"]["moments"]
        return [like["id"] for moment in moments if moment["id"] == moment_id for like in moment["likes"]]

    def raw(self, body: object, headers: str = "") -> socket.socket:
        """Sends a request, and returns its connection before anything is read."""
        content = json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        self.addCleanup(connection.close)
        connection.sendall(
            f"POST /graphql HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(content)}\r\n\r\n".encode() + content
        )
        return connection


class ServerTestCase(ClientTestCase):
    """A test case with one server per class, which is reset before each test."""

    arguments: ClassVar[Sequence[str]] = ()
    process: ClassVar[subprocess.Popen[str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.process = start(*cls.arguments)
        cls.port = port_of(cls.process)

    @classmethod
    def tearDownClass(cls) -> None:
        output, errors = cls.process.communicate(timeout=TIMEOUT)
        assert (output, errors) == ("", ""), f"the server wrote {output!r} and {errors!r}"

    def setUp(self) -> None:
        self.assertEqual(self.control("reset", {}).status, 200)


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(1 << 16):
        received += chunk
    return received
