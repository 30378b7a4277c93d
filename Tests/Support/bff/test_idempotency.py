"""Idempotency keys: a mutation is applied once, and every request with its key gets the same reply."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import Response, ServerTestCase, like, page, read_to_end, timeline


class IdempotencyTests(ServerTestCase):
    def send_keyed(self, key: str, body: object, **headers: str) -> Response:
        return self.send(body, {"Idempotency-Key": key, **headers})

    def assert_first(self, response: Response) -> None:
        self.assertEqual((response.status, response.headers.get("Idempotent-Replayed")), (200, None))

    def assert_replay(self, response: Response, first: Response) -> None:
        self.assertEqual((response.status, response.headers.get("Idempotent-Replayed")), (200, "true"))
        self.assertEqual(response.body, first.body)

    def test_every_later_request_gets_the_first_reply_and_changes_nothing(self) -> None:
        first = self.send_keyed("k", like("1"))
        self.assert_first(first)
        self.send(like("1", is_liked=False))
        self.assert_replay(self.send_keyed("k", like("1")), first)
        self.assert_replay(self.send_keyed("k", like("1")), first)
        self.assertEqual(self.likes("1"), ["4"])
        self.assertEqual(self.effects(), ["applied", "applied", "replayed", "replayed", "read"])
        self.assertEqual([record["executions"] for record in self.requests()], [1, 1, 0, 0, 1])
        self.assertEqual(self.outcomes(), ["answered"] * 5)

    def test_each_key_identifies_a_separate_change(self) -> None:
        self.assert_first(self.send_keyed("a", like("1")))
        self.assert_first(self.send_keyed("b", like("1", is_liked=False)))
        self.assert_first(self.send_keyed("A", like("1")))
        self.assertEqual(self.effects(), ["applied"] * 3)

    def test_without_a_key_every_request_is_applied(self) -> None:
        for is_liked in [True, False, True]:
            self.assert_first(self.send(like("1", is_liked)))
        self.assertEqual(self.effects(), ["applied"] * 3)
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_a_key_of_another_request_is_a_422(self) -> None:
        first = self.send_keyed("k", like("1"))
        named = {**like("1"), "operationName": "updateMomentLike"}
        for body in [like("2"), like("1", is_liked=False), like("101", user_id="1"), named]:
            response = self.send_keyed("k", body)
            self.assertEqual(response.status, 422)
            self.assertEqual(
                response.json["errors"],
                [{"message": 'The Idempotency-Key "k" belongs to another request. Give each change its own key.'}],
            )
        self.assertEqual(self.effects(), ["applied"] + ["refused"] * 4)
        self.assertEqual(self.likes("2"), ["0", "6", "9"])
        self.assert_replay(self.send_keyed("k", like("1")), first)

    def test_the_order_of_a_requests_members_does_not_matter(self) -> None:
        body = like("1")
        first = self.send_keyed("k", body)
        reordered: dict[str, Any] = {
            "operationName": None,
            "variables": dict(reversed(list(body["variables"].items()))),
            "query": body["query"],
        }
        self.assertNotEqual(json.dumps(reordered), json.dumps(body))
        self.assert_replay(self.send_keyed("k", reordered), first)

    def test_concurrent_requests_are_applied_once_and_all_get_the_reply(self) -> None:
        # Enough fields that the threads are switched many times during an execution, so that the executions overlap.
        field = 'updateMomentLike(momentID: "1", userID: "0", isLiked: true) { moments { id } }'
        fields = " ".join(f"f{number}: {field}" for number in range(30))
        body = {"query": f"mutation {{ {fields} }}"}
        self.arm("hold", gate="a", count=16)
        with ThreadPoolExecutor(16) as pool:
            calls = [pool.submit(self.send_keyed, "k", body) for _ in range(16)]
            self.await_gate("a", waiting=16)
            self.assertEqual(self.open_gate("a"), 16)
            responses = [call.result() for call in calls]
        self.assertEqual({response.body for response in responses}, {responses[0].body})
        replayed = [response.headers.get("Idempotent-Replayed") for response in responses]
        self.assertEqual((replayed.count(None), replayed.count("true")), (1, 15))
        effects = self.effects()
        self.assertEqual((effects.count("applied"), effects.count("replayed")), (1, 15))
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_a_request_that_arrives_while_the_first_reply_is_held_gets_it(self) -> None:
        self.arm("hold-after", gate="a")
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(self.send_keyed, "k", like("1"))
            self.await_gate("a")
            replay = self.send_keyed("k", like("1"))
            self.open_gate("a")
            self.assert_first(held.result())
            self.assert_replay(replay, held.result())

    def test_the_next_request_gets_a_reply_that_was_lost(self) -> None:
        for fault in ["drop-after", "drop-after-headers", "malformed", "empty", "wrong-shape", "graphql-error-partial"]:
            self.control("reset", {})
            plain = self.send(like("1"))
            self.control("reset", {})
            self.arm(fault)
            read_to_end(self.raw(like("1"), "Idempotency-Key: k\r\n"))
            self.send(like("1", is_liked=False))
            self.assert_replay(self.send_keyed("k", like("1")), plain)
            self.assertEqual(self.effects(), ["applied", "applied", "replayed"])
            self.assertEqual(self.likes("1"), ["4"])

    def test_a_fault_before_the_execution_stores_nothing(self) -> None:
        for fault in ["drop", "status", "retry-after", "graphql-error"]:
            self.control("reset", {})
            self.arm(fault)
            read_to_end(self.raw(like("1"), "Idempotency-Key: k\r\n"))
            self.assertEqual(self.likes("1"), ["4"])
            self.assert_first(self.send_keyed("k", like("1")))
            self.assertEqual(self.effects(), [None, "read", "applied"])

    def test_a_client_that_leaves_before_the_execution_stores_nothing(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(like("1"), "Idempotency-Key: k\r\n")
        self.await_gate("a")
        connection.close()
        (record,) = self.requests(disconnected=1)
        self.assertEqual((record["outcome"], record["effect"]), ("client-went-away", None))
        self.assert_first(self.send_keyed("k", like("1")))

    def test_a_client_that_leaves_after_the_execution_can_get_its_reply(self) -> None:
        self.arm("hold-after", gate="a")
        connection = self.raw(like("1"), "Idempotency-Key: k\r\n")
        self.await_gate("a")
        connection.close()
        (record,) = self.requests(disconnected=1)
        self.assertEqual((record["outcome"], record["effect"]), ("client-went-away", "applied"))
        self.send(like("1", is_liked=False))
        replay = self.send_keyed("k", like("1"))
        self.assertEqual(replay.headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.likes("1"), ["4"])

    def test_a_duplicate_with_a_key_is_applied_once(self) -> None:
        self.arm("duplicate")
        self.assertEqual(self.send_keyed("k", like("1")).headers["Idempotent-Replayed"], "true")
        (record,) = self.requests()
        self.assertEqual((record["effect"], record["executions"]), ("applied", 1))

    def test_an_error_of_the_mutation_is_stored(self) -> None:
        first = self.send_keyed("k", like("new"))
        self.assertEqual(
            [error["message"] for error in first.json["errors"]],
            ['The timeline of user "0" has no moment with the id "new".'],
        )
        self.control("moments", {"userID": "0", "id": "new"})
        self.assert_replay(self.send_keyed("k", like("new")), first)
        self.assertEqual(self.effects(), ["refused", "replayed"])
        self.assertEqual(self.likes("new"), [])

    def test_a_document_that_cannot_be_executed_stores_nothing(self) -> None:
        broken = {**like("1"), "variables": {}}
        for body in [broken, {"query": "mutation {"}, {"query": "mutation { likeAll }"}]:
            self.assertIn("errors", self.send_keyed("k", body).json)
        self.assert_first(self.send_keyed("k", like("1")))

    def test_a_query_ignores_its_key(self) -> None:
        self.assert_first(self.send_keyed("k", timeline("0")))
        self.assert_first(self.send_keyed("k", page("0", 1)))
        self.assert_first(self.send_keyed("k", like("1")))
        self.assert_first(self.send_keyed("k", timeline("0")))
        self.assertEqual([record["idempotencyKey"] for record in self.requests()], ["k"] * 4)

    def test_a_key_that_is_empty_or_too_long_is_a_400(self) -> None:
        for key in ["", "k" * 256]:
            response = self.send_keyed(key, like("1"))
            self.assertEqual(response.status, 400)
            self.assertEqual(response.json["errors"][0]["message"], "An Idempotency-Key has 1 to 255 characters.")
        self.assert_first(self.send_keyed("k" * 255, like("1")))
        self.assertEqual(self.effects(), ["refused", "refused", "applied"])

    def test_a_reset_forgets_keys(self) -> None:
        self.send_keyed("k", like("1"))
        self.control("reset", {})
        self.assert_first(self.send_keyed("k", like("2")))
