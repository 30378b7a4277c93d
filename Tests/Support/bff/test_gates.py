"""Gates, at which requests wait until a test opens them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import ServerTestCase, like, read_to_end, timeline


class GateTests(ServerTestCase):
    def test_a_held_request_is_not_executed_until_its_gate_opens(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(like("1"))
        self.await_gate("a")
        (record,) = self.requests()
        self.assertEqual(
            (record["fault"], record["effect"], record["outcome"], record["executions"]), ("hold", None, None, 0)
        )
        self.assertEqual(self.likes("1"), ["4"])
        self.assertEqual(self.open_gate("a"), 1)
        self.assertIn(b'"isLiked":true', read_to_end(connection))
        self.assertEqual(self.likes("1"), ["4", "0"])
        self.assertEqual(self.outcomes(), ["hold", "answered", "answered"])

    def test_a_held_reply_is_executed_before_its_gate_opens(self) -> None:
        self.arm("hold-after", gate="a")
        connection = self.raw(like("1"))
        self.await_gate("a")
        (record,) = self.requests()
        self.assertEqual((record["effect"], record["outcome"], record["executions"]), ("applied", None, 1))
        self.assertEqual(self.likes("1"), ["4", "0"])
        self.assertEqual(self.open_gate("a"), 1)
        self.assertIn(b'"isLiked":true', read_to_end(connection))
        self.assertEqual(self.outcomes(), ["hold-after", "answered"])

    def test_an_opened_gate_releases_all_requests_and_stays_open(self) -> None:
        self.arm("hold", gate="a", count=3)
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(self.send, timeline("0")) for _ in range(2)]
            self.await_gate("a", waiting=2)
            self.assertEqual(self.open_gate("a"), 2)
            self.assertEqual([call.result().status for call in calls], [200, 200])
        self.assertEqual(self.send(timeline("0")).status, 200)
        self.assertEqual(self.open_gate("a"), 0)

    def test_a_gate_that_was_opened_before_a_request_does_not_hold_it(self) -> None:
        self.open_gate("a")
        self.arm("hold", gate="a")
        self.assertEqual(self.send(timeline("0")).status, 200)

    def test_gates_open_independently(self) -> None:
        self.arm("hold", gate="a")
        self.arm("hold", gate="b")
        first = self.raw(timeline("0"))
        self.await_gate("a")
        second = self.raw(timeline("1"))
        self.await_gate("b")
        self.open_gate("b")
        self.assertIn("Mei Zhou", read_to_end(second).decode())
        self.assertEqual(self.outcomes(), [None, "hold"])
        self.open_gate("a")
        self.assertIn("Jake Lin", read_to_end(first).decode())

    def test_a_header_selects_a_gate(self) -> None:
        connection = self.raw(timeline("0"), "X-Fault: hold\r\nX-Fault-Value: 7\r\n")
        self.await_gate("7")
        self.open_gate("7")
        self.assertTrue(read_to_end(connection).startswith(b"HTTP/1.1 200 OK"))

    def test_a_client_that_leaves_a_gate_is_detected_immediately_and_no_longer_counted(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(like("1"))
        self.await_gate("a")
        connection.close()
        (record,) = self.requests(disconnected=1)
        self.assertEqual((record["fault"], record["outcome"], record["executions"]), ("hold", "client-went-away", 0))
        self.assertEqual(self.open_gate("a"), 0)
        self.assertEqual(self.likes("1"), ["4"])

    def test_a_request_followed_by_more_bytes_passes_an_opened_gate(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(timeline("0"))
        connection.sendall(b"POST")
        self.await_gate("a")
        self.open_gate("a")
        self.assertTrue(connection.recv(1024).startswith(b"HTTP/1.1 200 OK"))

    def test_a_reset_releases_all_requests_and_closes_the_gates(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(like("1"))
        self.await_gate("a")
        self.control("reset", {})
        self.assertIn(b'"isLiked":true', read_to_end(connection))
        self.assertEqual(self.requests(), [])
        self.arm("hold", gate="a")
        self.raw(like("1"))
        self.await_gate("a")
        self.assertEqual(self.outcomes(), [None])

    def test_a_gate_needs_a_name(self) -> None:
        cases: list[dict[str, Any]] = [{}, {"gate": ""}, {"gate": 1}, {"gate": "x" * 101}]
        for arguments in cases:
            response = self.control("faults", {"fault": "hold", **arguments})
            self.assertEqual(response.status, 400)
            self.assertEqual(
                response.json["errors"][0]["message"], '"gate" must be a name of 1 to 100 characters.'
            )
