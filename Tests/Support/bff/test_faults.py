"""The effect of each fault on the client, and whether the mutation was executed."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any

from harness import TIMEOUT, Response, ServerTestCase, like, read_to_end, timeline


class FaultTests(ServerTestCase):
    def send_with(self, fault: str, body: object, **arguments: Any) -> Response:
        self.arm(fault, **arguments)
        return self.send(body)

    def assert_recorded(self, outcome: str, executions: int) -> None:
        (record,) = self.requests()
        self.assertEqual((record["fault"], record["outcome"], record["executions"]), (outcome, outcome, executions))

    def test_drop_closes_before_the_execution(self) -> None:
        self.arm("drop")
        self.assertEqual(read_to_end(self.raw(like("1"))), b"")
        self.assert_recorded("drop", executions=0)
        self.assertEqual(self.likes("1"), ["4"])

    def test_drop_after_closes_after_the_execution(self) -> None:
        self.arm("drop-after")
        self.assertEqual(read_to_end(self.raw(like("1"))), b"")
        self.assert_recorded("drop-after", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_drop_after_headers_sends_half_of_the_body(self) -> None:
        whole = self.send(like("1")).body
        self.control("reset", {})
        with self.assertRaises(http.client.IncompleteRead) as caught:
            self.send_with("drop-after-headers", like("1"))
        self.assertEqual(caught.exception.partial, whole[: len(whole) // 2])
        self.assertEqual(caught.exception.expected, len(whole) - len(whole) // 2)
        self.assert_recorded("drop-after-headers", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_status_answers_with_text_before_the_execution(self) -> None:
        response = self.send_with("status", like("1"), value=503)
        self.assertEqual((response.status, response.body), (503, b"Injected status 503.\n"))
        self.assertEqual(response.headers["Content-Type"], "text/plain; charset=utf-8")
        self.assert_recorded("status", executions=0)
        self.assertEqual(self.likes("1"), ["4"])

    def test_status_is_500_by_default(self) -> None:
        self.assertEqual(self.send_with("status", timeline("0")).status, 500)

    def test_retry_after_answers_with_the_seconds_to_wait_before_the_execution(self) -> None:
        response = self.send_with("retry-after", like("1"), value=30)
        self.assertEqual((response.status, response.body), (503, b"Injected status 503.\n"))
        self.assertEqual(response.headers["Retry-After"], "30")
        self.assertEqual(response.headers["Content-Type"], "text/plain; charset=utf-8")
        self.assert_recorded("retry-after", executions=0)
        self.assertEqual(self.likes("1"), ["4"])

    def test_retry_after_is_one_second_unless_another_number_is_given(self) -> None:
        self.assertEqual(self.send_with("retry-after", timeline("0")).headers["Retry-After"], "1")
        response = self.send(timeline("0"), {"X-Fault": "retry-after", "X-Fault-Value": "0"})
        self.assertEqual((response.status, response.headers["Retry-After"]), (503, "0"))
        response = self.send_with("retry-after", timeline("0"), value=50_000)
        self.assertEqual(response.headers["Retry-After"], "50000")

    def test_another_status_requests_no_wait(self) -> None:
        self.assertNotIn("Retry-After", self.send_with("status", timeline("0"), value=503).headers)

    def test_graphql_error_answers_with_errors_before_the_execution(self) -> None:
        response = self.send_with("graphql-error", like("1"))
        self.assertEqual(response.status, 200)
        self.assertEqual(response.json, {"data": None, "errors": [{"message": "Injected failure."}]})
        self.assert_recorded("graphql-error", executions=0)
        self.assertEqual(self.likes("1"), ["4"])

    def test_graphql_error_partial_answers_with_data_and_errors(self) -> None:
        for body, field in [(timeline("0"), "getMomentsDetailsByUserID"), (like("1"), "updateMomentLike")]:
            plain = self.send(body).json
            self.control("reset", {})
            response = self.send_with("graphql-error-partial", body)
            self.assertEqual(response.status, 200)
            self.assertEqual(response.headers["Content-Type"], "application/json; charset=utf-8")
            self.assertEqual(
                response.json,
                {
                    "data": plain["data"],
                    "errors": [{"message": "Injected partial failure.", "path": [field, "moments", 0]}],
                    "extensions": {"trace": "t-1"},
                },
            )
            self.assert_recorded("graphql-error-partial", executions=1)
        self.assertEqual(self.effects(), ["applied"])
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_graphql_error_partial_has_a_path_that_exists_in_the_answer(self) -> None:
        field = 'getMomentsDetailsByUserID(userID: "0")'
        cases: list[tuple[str, list[object]]] = [
            (f"{{ a: {field} {{ userDetails {{ id }} m: moments {{ id }} }} }}", ["a", "m", 0]),
            (f"{{ a: {field} {{ userDetails {{ id }} }} }}", ["a"]),
            ("{ t: __typename }", ["t"]),
            (f'{{ a: {field[:-1]}, after: "bW9tZW50OjE1") {{ moments {{ id }} }} }}', ["a"]),
            (f"{{ {field} @skip(if: true) {{ userDetails {{ id }} }} }}", []),
        ]
        for query, path in cases:
            response = self.send_with("graphql-error-partial", {"query": query})
            self.assertEqual(response.json["errors"][0]["path"], path)

    def test_graphql_error_partial_does_not_change_an_answer_without_data(self) -> None:
        for body in [timeline("7"), {"query": "query {"}, {}]:
            plain = self.send(body)
            response = self.send_with("graphql-error-partial", body)
            self.assertEqual((response.status, response.body), (plain.status, plain.body))

    def test_malformed_answers_with_half_of_the_json(self) -> None:
        response = self.send_with("malformed", like("1"))
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["Content-Type"], "application/json; charset=utf-8")
        self.assertTrue(response.body.startswith(b'{"data":{"updateMomentLike":{'))
        with self.assertRaises(json.JSONDecodeError):
            json.loads(response.body.decode(errors="replace"))
        self.assert_recorded("malformed", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_empty_answers_with_nothing(self) -> None:
        response = self.send_with("empty", like("1"))
        self.assertEqual((response.status, response.headers["Content-Length"], response.body), (200, "0", b""))
        self.assert_recorded("empty", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_wrong_shape_answers_with_other_data(self) -> None:
        response = self.send_with("wrong-shape", like("1"))
        self.assertEqual(response.status, 200)
        self.assertEqual(response.json["data"]["updateMomentLike"], {"moments": "none"})
        self.assertEqual(response.json["data"]["getMomentsDetailsByUserID"], {"moments": "none"})
        self.assert_recorded("wrong-shape", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_duplicate_executes_twice(self) -> None:
        plain = self.send(like("1")).json
        self.control("reset", {})
        self.assertEqual(self.send_with("duplicate", like("1")).json, plain)
        self.assert_recorded("duplicate", executions=2)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_oversized_pads_the_answer_to_the_size(self) -> None:
        plain = self.send(timeline("0")).json
        self.control("reset", {})
        for size in [200_000, 3_000_001]:
            response = self.send_with("oversized", timeline("0"), size=size)
            self.assertEqual((response.status, len(response.body)), (200, size))
            self.assertEqual(response.json["data"], plain["data"])
        self.assertEqual(self.outcomes(), ["oversized", "oversized"])

    def test_oversized_is_never_shorter_than_the_answer(self) -> None:
        plain = self.send(timeline("0")).json
        self.assertEqual(
            self.send_with("oversized", timeline("0"), size=0).json, {**plain, "extensions": {"padding": ""}}
        )

    def test_oversized_is_16_mebibytes_by_default(self) -> None:
        self.assertEqual(len(self.send_with("oversized", timeline("0")).body), 16 << 20)

    def test_a_client_that_leaves_during_an_oversized_answer_is_recorded(self) -> None:
        self.arm("oversized", size=1 << 30)
        connection = self.raw(timeline("0"))
        self.assertTrue(connection.recv(1024).startswith(b"HTTP/1.1 200 OK"))
        connection.close()
        self.assertEqual(self.outcomes(disconnected=1), ["client-went-away"])

    def test_slow_answers_after_the_delay(self) -> None:
        self.arm("slow", delay=0.2)
        started = time.monotonic()
        response = self.send(like("1"))
        self.assertGreaterEqual(time.monotonic() - started, 0.2)
        self.assertEqual((response.status, "errors" in response.json), (200, False))
        self.assert_recorded("slow", executions=1)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_slow_detects_immediately_that_the_client_went_away_and_executes_nothing(self) -> None:
        self.arm("slow", delay=3600)
        connection = self.raw(like("1"))
        self.requests(count=1)
        connection.close()
        (record,) = self.requests(disconnected=1)
        self.assertEqual(
            (record["fault"], record["outcome"], record["executions"]), ("slow", "client-went-away", 0)
        )
        self.assertEqual(self.likes("1"), ["4"])

    def test_slow_detects_a_reset_connection(self) -> None:
        self.arm("slow", delay=3600)
        connection = self.raw(like("1"))
        self.assertEqual(self.outcomes(count=1), [None])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()
        self.assertEqual(self.outcomes(disconnected=1), ["client-went-away"])

    def test_slow_keeps_waiting_when_its_connection_has_another_request(self) -> None:
        self.arm("slow", delay=0.2)
        connection = self.raw(timeline("0"))
        connection.sendall(b"POST")
        self.assertTrue(connection.recv(1024).startswith(b"HTTP/1.1 200 OK"))
        self.assertEqual(self.outcomes(), ["slow"])

    def test_a_slow_request_does_not_block_other_requests(self) -> None:
        self.arm("slow", delay=3600)
        self.raw(timeline("0"))
        self.assertEqual(self.outcomes(count=1), [None])
        self.assertEqual(self.send(timeline("0")).status, 200)
        self.assertEqual(self.outcomes(), [None, "answered"])

    def test_a_request_in_flight_at_a_reset_leaves_no_trace(self) -> None:
        self.arm("slow", delay=0.2)
        connection = self.raw(like("1"))
        self.assertEqual(self.outcomes(count=1), [None])
        self.control("reset", {})
        self.assertIn(b'"isLiked":true', read_to_end(connection))
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4"])


class ArmingTests(ServerTestCase):
    def test_each_armed_fault_applies_once_in_order(self) -> None:
        self.arm("status", value=502, count=2)
        self.arm("empty")
        statuses = [(response.status, len(response.body) > 0) for response in map(self.send, [timeline("0")] * 4)]
        self.assertEqual(statuses, [(502, True), (502, True), (200, False), (200, True)])
        self.assertEqual(self.outcomes(), ["status", "status", "empty", "answered"])

    def test_a_malformed_request_uses_up_a_fault(self) -> None:
        self.arm("status", value=503)
        self.arm("malformed")
        self.assertEqual([self.send(b"{").status for _ in range(3)], [503, 200, 400])
        self.assertEqual([record["executions"] for record in self.requests()], [0, 0, 0])

    def test_a_header_selects_a_fault_and_keeps_the_armed_ones(self) -> None:
        self.arm("empty")
        response = self.send(timeline("0"), {"X-Fault": "status", "X-Fault-Value": "429"})
        self.assertEqual(response.status, 429)
        self.assertEqual(self.send(timeline("0"), {"X-Fault": "status"}).status, 500)
        self.assertEqual(len(self.send(timeline("0"), {"X-Fault": "oversized", "X-Fault-Value": "50000"}).body), 50000)
        self.assertEqual(self.send(timeline("0")).body, b"")
        self.assertEqual(self.outcomes(), ["status", "status", "oversized", "empty"])

    def test_a_header_that_names_no_fault_is_a_400(self) -> None:
        for headers, message in [
            ({"X-Fault": "fire"}, "No fault is named 'fire'. The faults are drop, drop-after,"),
            ({"X-Fault": "status", "X-Fault-Value": "200"}, '"value" must be a whole number from 400 to 599.'),
            ({"X-Fault": "status", "X-Fault-Value": "bad"}, "X-Fault-Value must be a number."),
            ({"X-Fault": "slow", "X-Fault-Value": "nan"}, '"delay" must be a number from 0 to 3600.'),
            ({"X-Fault": "drop", "X-Fault-Value": "1"}, 'The fault "drop" takes no "X-Fault-Value".'),
        ]:
            response = self.send(timeline("0"), headers)
            self.assertEqual(response.status, 400)
            self.assertTrue(response.json["errors"][0]["message"].startswith(message), response.body)

    def test_arming_an_invalid_fault_is_a_400(self) -> None:
        cases: list[tuple[object, str]] = [
            (b"{", "The body is not JSON"),
            ([], "The body must be a JSON object."),
            ({}, "No fault is named None."),
            ({"fault": ["drop"]}, "No fault is named ['drop']."),
            ({"fault": "drop", "count": 0}, '"count" must be a whole number from 1 to 10000.'),
            ({"fault": "drop", "count": True}, '"count" must be a whole number from 1 to 10000.'),
            ({"fault": "drop", "delay": 1}, 'The fault "drop" takes no "delay".'),
            ({"fault": "slow", "delay": "1"}, '"delay" must be a number from 0 to 3600.'),
            ({"fault": "oversized", "size": 1.5}, '"size" must be a whole number from 0 to 1073741824.'),
            ({"fault": "status", "value": True}, '"value" must be a whole number from 400 to 599.'),
            ({"fault": "retry-after", "value": -1}, '"value" must be a whole number from 0 to 86400.'),
            ({"fault": "retry-after", "value": 0.5}, '"value" must be a whole number from 0 to 86400.'),
            ({"fault": "graphql-error-partial", "value": 1}, 'The fault "graphql-error-partial" takes no "value".'),
        ]
        for body, message in cases:
            response = self.control("faults", body)
            self.assertEqual(response.status, 400)
            self.assertTrue(response.json["errors"][0]["message"].startswith(message), response.body)
        self.assertEqual(self.send(timeline("0")).status, 200)

    def test_arming_closes_idle_connections_and_a_fault_closes_its_own(self) -> None:
        connection = self.connect()
        self.send(timeline("0"), connection=connection)
        idle = connection.sock
        assert idle
        self.arm("graphql-error")
        self.assertEqual(idle.recv(1), b"")
        self.assertEqual(self.send(timeline("0")).headers["Connection"], "close")
