"""Restarts of the server, refused connections, and the end of the server's parent."""

from __future__ import annotations

import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional

from harness import FOLDER, TIMEOUT, ClientTestCase, ServerTestCase, like, page, port_of, read_to_end, start, timeline


class RestartTests(ClientTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name) / "state"
        self.port = 0
        self.process: Optional[subprocess.Popen[str]] = None
        self.addCleanup(self.stop)
        self.start()

    def start(self) -> None:
        """Starts the server, on the same port as before if it was already started."""
        self.process = start("--port", str(self.port), "--state", str(self.state))
        self.port = port_of(self.process)

    def stop(self, how: Optional[signal.Signals] = None) -> None:
        """Ends the server with a signal, or by closing its standard input."""
        if self.process:
            if how:
                self.process.send_signal(how)
            self.assertEqual(self.process.communicate(timeout=TIMEOUT), ("", ""))
            self.process = None

    def restart(self, how: Optional[signal.Signals] = None) -> None:
        port = self.port
        self.stop(how)
        self.start()
        self.assertEqual(self.port, port)

    def test_likes_keys_cursors_and_requests_survive_any_end_of_the_server(self) -> None:
        info = self.send(page("0", 1)).json["data"]["getMomentsDetailsByUserID"]["pageInfo"]
        self.send(b"", method="DELETE", path="/control/requests")
        first = self.send(like("1"), {"Idempotency-Key": "k"})
        self.send(like("0", is_liked=False))
        self.control("moments", {"userID": "0", "id": "new"})
        for number, how in enumerate([None, signal.SIGTERM, signal.SIGKILL]):
            before = self.requests()
            self.restart(how)
            self.assertEqual(self.requests(), before)
            replay = self.send(like("1"), {"Idempotency-Key": "k"})
            self.assertEqual((replay.body, replay.headers["Idempotent-Replayed"]), (first.body, "true"))
            self.assertEqual(self.send(like("2"), {"Idempotency-Key": "k"}).status, 422)
            self.assertEqual(
                self.effects(), ["applied", "applied"] + ["replayed", "refused", "read", "read"] * number
                + ["replayed", "refused"]
            )
            self.assertEqual((self.likes("1"), self.likes("0")), (["4", "0"], []))
        answer = self.send(page("0", 2)).json["data"]["getMomentsDetailsByUserID"]
        self.assertEqual([moment["id"] for moment in answer["moments"]], ["new", "0"])
        answer = self.send(page("0", 2, info["endCursor"])).json["data"]["getMomentsDetailsByUserID"]
        self.assertEqual([moment["id"] for moment in answer["moments"]], ["1", "2"])

    def test_a_change_whose_reply_is_lost_when_the_server_ends_is_not_applied_again(self) -> None:
        self.control("faults", {"fault": "hold-after", "gate": "a"})
        connection = self.raw(like("1"), "Idempotency-Key: k\r\n")
        self.await_gate("a")
        self.restart(signal.SIGKILL)
        self.assertEqual(read_to_end(connection), b"")
        (record,) = self.requests()
        self.assertEqual((record["effect"], record["outcome"], record["executions"]), ("applied", "server-stopped", 1))
        self.send(like("1", is_liked=False))
        replay = self.send(like("1"), {"Idempotency-Key": "k"})
        self.assertEqual(replay.headers["Idempotent-Replayed"], "true")
        self.assertIn(b'"isLiked":true', replay.body)
        self.assertEqual(self.likes("1"), ["4"])

    def test_a_request_that_is_lost_before_its_execution_when_the_server_ends_can_be_sent_again(self) -> None:
        self.control("faults", {"fault": "hold", "gate": "a"})
        self.raw(like("1"), "Idempotency-Key: k\r\n")
        self.await_gate("a")
        self.restart(signal.SIGKILL)
        self.assertNotIn("Idempotent-Replayed", self.send(like("1"), {"Idempotency-Key": "k"}).headers)
        self.assertEqual(
            [(record["effect"], record["outcome"]) for record in self.requests()],
            [(None, "server-stopped"), ("applied", "answered")],
        )

    def test_cleared_and_reset_state_does_not_return(self) -> None:
        self.send(like("1"), {"Idempotency-Key": "k"})
        self.send(b"", method="DELETE", path="/control/requests")
        self.restart(signal.SIGKILL)
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4", "0"])
        self.control("reset", {})
        self.restart(signal.SIGKILL)
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4"])
        self.assertNotIn("Idempotent-Replayed", self.send(like("1"), {"Idempotency-Key": "k"}).headers)

    def test_a_request_in_flight_at_a_reset_leaves_no_trace_in_the_file(self) -> None:
        self.control("faults", {"fault": "hold", "gate": "a"})
        connection = self.raw(like("1"), "Idempotency-Key: k\r\n")
        self.await_gate("a")
        self.control("reset", {})
        read_to_end(connection)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4"])

    def test_faults_and_gates_do_not_survive(self) -> None:
        self.control("faults", {"fault": "status"})
        self.open_gate("a")
        self.restart()
        self.assertEqual(self.send(timeline("0")).status, 200)
        self.control("faults", {"fault": "hold", "gate": "a"})
        self.raw(timeline("0"))
        self.await_gate("a")

    def test_connections_of_the_ended_server_do_not_block_the_port(self) -> None:
        connections = [self.connect() for _ in range(3)]
        for connection in connections:
            self.send(timeline("0"), connection=connection)
        self.restart(signal.SIGTERM)
        self.assertEqual([connection.sock.recv(1) for connection in connections if connection.sock], [b""] * 3)
        self.stop(signal.SIGKILL)
        with self.assertRaises(ConnectionRefusedError):
            self.send(timeline("0"))
        self.start()
        self.assertEqual(self.send(timeline("0")).status, 200)

    def test_a_state_file_can_be_used_by_one_server_only(self) -> None:
        assert_refused(self, self.state, 65, f"{self.state} is not a usable state file: another server has it open")
        self.send(like("1"))
        self.restart()
        self.assertEqual(self.likes("1"), ["4", "0"])


def assert_refused(case: unittest.TestCase, state: Path, code: int, message: str) -> None:
    process = start("--state", str(state))
    output, errors = process.communicate(timeout=TIMEOUT)
    case.assertEqual((process.returncode, output, errors), (code, "", f"server.py: {message}\n"))


class StateFileTests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_file_with_other_content_is_not_changed(self) -> None:
        path = self.folder / "text"
        path.write_text("a text that is no database, and long enough to be taken for none")
        before = path.read_bytes()
        assert_refused(self, path, 65, f"{path} is not a usable state file: file is not a database")
        self.assertEqual(path.read_bytes(), before)

    def test_a_database_with_another_content_or_format_is_rejected(self) -> None:
        for name, statement, message in [
            ("foreign", "CREATE TABLE t (c)", "it has format 0 instead of 2"),
            ("older", "PRAGMA user_version=1", "it has format 1 instead of 2"),
            ("newer", "PRAGMA user_version=3", "it has format 3 instead of 2"),
        ]:
            path = self.folder / name
            database = sqlite3.connect(path)
            database.execute(statement)
            database.commit()
            database.close()
            assert_refused(self, path, 65, f"{path} is not a usable state file: {message}")

    def test_a_file_that_cannot_be_created_ends_the_server_with_73(self) -> None:
        path = self.folder / "no" / "folder"
        assert_refused(self, path, 73, f"cannot open {path}: unable to open database file")


class RefusalTests(ServerTestCase):
    def refuse(self) -> int:
        """Makes the server refuse connections, and returns the port that still accepts control requests."""
        response = self.control("refuse", {})
        self.assertEqual(response.status, 200)
        control: str = response.json["control"]
        return int(control.removeprefix("http://127.0.0.1:"))

    def at(self, port: int, path: str, method: str = "POST") -> Any:
        served, self.port = self.port, port
        try:
            return self.send(b"", method=method, path=path).json
        finally:
            self.port = served

    def test_connections_are_refused_until_they_are_accepted_again(self) -> None:
        self.send(timeline("0"))
        port = self.refuse()
        for _ in range(3):
            with self.assertRaises(ConnectionRefusedError):
                self.send(timeline("0"))
        self.assertEqual(len(self.at(port, "/control/requests", "GET")), 1)
        self.assertEqual(self.at(port, "/control/accept"), {"status": "ok"})
        self.assertEqual(self.send(timeline("0")).status, 200)
        self.assertEqual(self.outcomes(), ["answered", "answered"])
        with self.assertRaises(ConnectionRefusedError):
            self.at(port, "/control/health", "GET")

    def test_connections_can_be_refused_repeatedly(self) -> None:
        for _ in range(3):
            port = self.refuse()
            self.assertEqual(self.at(port, "/control/refuse"), {"control": f"http://127.0.0.1:{port}"})
            self.at(port, "/control/accept")
            self.assertEqual(self.control("accept", {}).json, {"status": "ok"})
            self.assertEqual(self.send(timeline("0")).status, 200)

    def test_idle_connections_are_closed_and_requests_in_flight_continue(self) -> None:
        idle = self.connect()
        self.send(timeline("0"), connection=idle)
        self.arm("hold", gate="a")
        held = self.raw(like("1"))
        self.await_gate("a")
        again = self.connect()
        self.send(timeline("0"), connection=again)
        port = self.refuse()
        assert again.sock
        self.assertEqual(again.sock.recv(1), b"")
        self.assertEqual(self.at(port, "/control/gates?gate=a", "GET"), {"gate": "a", "waiting": 1})
        served, self.port = self.port, port
        self.open_gate("a")
        self.port = served
        self.assertIn(b'"isLiked":true', read_to_end(held))
        self.at(port, "/control/accept")


class OrphanTests(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "pidfd_open"), "requires os.pidfd_open")
    def test_the_server_ends_with_its_parent_even_if_another_process_holds_its_input(self) -> None:
        # The parent process starts the server, and then a sleeper that inherits the pipe to the server's input.
        middle = (
            "import os, subprocess, sys\n"
            "reading, writing = os.pipe()\n"
            "server = subprocess.Popen([sys.executable, sys.argv[1]], stdin=reading, stdout=sys.stdout)\n"
            "os.close(reading)\n"
            "os.set_inheritable(writing, True)\n"
            "sleeper = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, close_fds=False)\n"
            "print(sleeper.pid, file=sys.stderr, flush=True)\n"
            "server.wait()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", middle, str(FOLDER / "server.py")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout and process.stderr
        sleeper = int(process.stderr.readline())
        try:
            port = port_of(process)
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT):
                pass
            process.kill()
            process.wait(TIMEOUT)
            # The output ends when the server ends, because no other process has that pipe.
            self.assertTrue(select.select([process.stdout], [], [], TIMEOUT)[0])
            self.assertEqual(process.stdout.read(), "")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        finally:
            os.kill(sleeper, signal.SIGKILL)
            process.stdout.close()
            process.stderr.close()

    @unittest.skipUnless(hasattr(os, "pidfd_open"), "requires os.pidfd_open")
    def test_the_server_does_not_start_for_a_parent_that_has_ended(self) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            ended.wait(TIMEOUT)
        process = start("--parent", str(ended.pid))
        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertEqual(process.communicate(), ("", ""))
