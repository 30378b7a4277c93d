"""The media type of replies, and their HTTP statuses."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Optional

from harness import (
    FOLDER,
    MUTATION,
    QUERY,
    TIMEOUT,
    ClientTestCase,
    Response,
    ServerTestCase,
    like,
    port_of,
    read_to_end,
    start,
    timeline,
)
from media import MediaType, negotiated

JSON = "application/json; charset=utf-8"
GRAPHQL = "application/graphql-response+json; charset=utf-8"
ACCEPT = {"Accept": "application/graphql-response+json, application/json;q=0.9"}

# Requests, grouped by their status with the GraphQL media type and by the members of their answers.
DATA = [timeline("0"), like("1")]
NULL_DATA = [timeline("7"), like("100")]
NOT_PARSED: list[dict[str, Any]] = [{"query": "query {"}, {"query": ""}]
NOT_VALID: list[dict[str, Any]] = [
    {"query": '{ getMomentsDetailsByUserID(userID: "0") { likes } }'},
    {"query": "fragment name on UserDetails { name }"},
]
NOT_EXECUTED: list[dict[str, Any]] = [
    {"query": QUERY, "variables": {"userID": "0"}},
    {"query": QUERY, "variables": {"userID": "0", "withLikes": "yes"}},
    {"query": MUTATION, "variables": {"momentID": "1"}},
    {"query": QUERY, "variables": timeline("0")["variables"], "operationName": "other"},
    {"query": f"{QUERY} {MUTATION}", "variables": timeline("0")["variables"]},
]
NO_DATA = NOT_PARSED + NOT_VALID + NOT_EXECUTED
NOT_JSON = [b"{", b"", b"NONSENSE", b"\xff"]
MALFORMED: list[object] = [
    [],
    "{ __typename }",
    {},
    {"qeury": QUERY},
    {"query": None},
    {"query": QUERY, "variables": []},
    {"query": QUERY, "operationName": 1},
]
NO_REQUESTS = [*NOT_JSON, *MALFORMED]
WRONG_EXTENSIONS: list[dict[str, Any]] = [{**timeline("0"), "extensions": "trace"}, {**timeline("0"), "extensions": []}]


class NegotiationTests(unittest.TestCase):
    def test_the_graphql_media_type_is_chosen_if_it_is_listed_and_not_less_preferred(self) -> None:
        for accept in [
            "application/graphql-response+json",
            "application/graphql-response+json, application/json",
            "application/json, application/graphql-response+json",
            "application/graphql-response+json, application/json;q=0.9",
            "application/json; q=0.5 ,Application/GraphQL-Response+JSON ; Q=0.5",
            "application/graphql-response+json;charset=utf-8, application/json;charset=utf-8;q=0.1",
            "application/graphql-response+json;q=0.5, application/json;q=0.1, */*",
            "application/graphql-response+json;q=0.5, */*;q=0.1",
            "application/graphql-response+json;q=0.1, application/json;q=0",
            "application/graphql-response+json, application/json;q=high",
        ]:
            self.assertIs(negotiated(accept), MediaType.GRAPHQL_RESPONSE, accept)

    def test_plain_json_is_chosen_if_the_graphql_media_type_is_not_listed_or_less_preferred(self) -> None:
        for accept in [
            "",
            ",;=",
            "*/*",
            "application/*",
            "application/json",
            "text/html, application/json",
            "application/graphql-response+json;q=0.9, application/json",
            "application/graphql-response+json;q=0.9, */*",
            "application/graphql-response+json;q=0.1, application/*;q=0.2, */*;q=0.05",
            "application/graphql-response+json;q=0",
            "application/graphql-response+json;q=0, application/json;q=0",
            "application/graphql-response+json;q=high, application/json",
            "application/graphql-response+json;q=2, application/json",
            "application/graphql-response+json;q=nan, application/json",
            "application/graphql+json",
        ]:
            self.assertIs(negotiated(accept), MediaType.JSON, accept)


class MediaTestCase(ServerTestCase):
    def assert_reply(self, response: Response, status: int, content_type: str) -> None:
        self.assertEqual((response.status, response.headers["Content-Type"]), (status, content_type), response.body)


class GraphQLResponseTests(MediaTestCase):
    arguments = ("--media-type", "graphql-response")

    def test_data_is_a_200(self) -> None:
        for body in DATA:
            response = self.send(body, ACCEPT)
            self.assert_reply(response, 200, GRAPHQL)
            self.assertEqual(list(response.json), ["data"])

    def test_null_data_is_a_294(self) -> None:
        for body in NULL_DATA:
            response = self.send(body, ACCEPT)
            self.assert_reply(response, 294, GRAPHQL)
            self.assertEqual((list(response.json), response.json["data"]), (["data", "errors"], None))

    def assert_refused(self, bodies: Sequence[object], status: int) -> None:
        for body in bodies:
            response = self.send(body, ACCEPT)
            self.assert_reply(response, status, GRAPHQL)
            self.assertEqual(list(response.json), ["errors"])
        self.assertEqual(self.effects(), ["refused"] * len(bodies))

    def test_a_document_that_cannot_be_parsed_is_a_400(self) -> None:
        self.assert_refused(NOT_PARSED, 400)

    def test_a_document_that_is_not_valid_is_a_422(self) -> None:
        self.assert_refused(NOT_VALID, 422)

    def test_an_undetermined_operation_or_invalid_variables_are_a_422(self) -> None:
        self.assert_refused(NOT_EXECUTED, 422)

    def test_a_body_that_is_not_json_is_a_400(self) -> None:
        self.assert_refused(NOT_JSON, 400)

    def test_json_that_is_not_a_request_is_a_422(self) -> None:
        self.assert_refused(MALFORMED + WRONG_EXTENSIONS, 422)

    def test_extensions_must_be_an_object_or_null(self) -> None:
        for extensions in ({}, {"trace": True}, None):
            self.assert_reply(self.send({**timeline("0"), "extensions": extensions}, ACCEPT), 200, GRAPHQL)

    def test_an_error_of_the_content_type_or_the_key_has_the_media_type(self) -> None:
        self.assert_reply(self.send(timeline("0"), {**ACCEPT, "Content-Type": "text/plain"}), 415, GRAPHQL)
        self.assert_reply(self.send(like("1"), {**ACCEPT, "Idempotency-Key": "k" * 256}), 400, GRAPHQL)
        self.send(like("1"), {**ACCEPT, "Idempotency-Key": "k"})
        response = self.send(like("2"), {**ACCEPT, "Idempotency-Key": "k"})
        self.assert_reply(response, 422, GRAPHQL)
        self.assertEqual(list(response.json), ["errors"])

    def test_replies_outside_of_graphql_are_plain_json(self) -> None:
        self.assert_reply(self.send(timeline("0"), ACCEPT, path="/"), 404, JSON)
        self.assert_reply(self.send(b"", ACCEPT, method="GET"), 405, JSON)
        self.assert_reply(self.send(timeline("0"), {**ACCEPT, "X-Fault": "fire"}), 400, JSON)
        self.assert_reply(self.send(b"", ACCEPT, method="GET", path="/control/health"), 200, JSON)

    def test_a_client_that_does_not_accept_it_gets_plain_json(self) -> None:
        headers: list[dict[str, str]] = [{}, {"Accept": "*/*"}, {"Accept": "application/json"}]
        for header in headers:
            for body in DATA + NULL_DATA + NO_DATA + WRONG_EXTENSIONS:
                self.assert_reply(self.send(body, header), 200, JSON)
            for request in NO_REQUESTS:
                self.assert_reply(self.send(request, header), 400, JSON)

    def test_accept_headers_are_joined(self) -> None:
        for second, content_type in [("q=1", JSON), ("q=0.1", GRAPHQL)]:
            headers = (
                "Accept: application/graphql-response+json;q=0.5\r\n"
                f"Accept: application/json;{second}\r\nX-Fault: slow\r\nX-Fault-Value: 0\r\n"
            )
            received = read_to_end(self.raw(timeline("0"), headers))
            self.assertIn(f"\r\nContent-Type: {content_type}\r\n".encode(), received)

    def test_faults_keep_the_media_type(self) -> None:
        for fault in ["malformed", "empty", "wrong-shape", "duplicate", "slow"]:
            self.arm(fault)
            self.assert_reply(self.send(timeline("0"), ACCEPT), 200, GRAPHQL)
        for body, status in [(NULL_DATA[0], 294), (NOT_PARSED[0], 400), (NOT_VALID[0], 422)]:
            self.arm("oversized", size=50_000)
            self.assert_reply(self.send(body, ACCEPT), status, GRAPHQL)
        self.arm("status", value=503)
        self.assert_reply(self.send(timeline("0"), ACCEPT), 503, "text/plain; charset=utf-8")

    def test_an_injected_error_is_a_294(self) -> None:
        for headers, status, content_type in [(ACCEPT, 294, GRAPHQL), ({}, 200, JSON)]:
            self.arm("graphql-error")
            response = self.send(timeline("0"), headers)
            self.assert_reply(response, status, content_type)
            self.assertEqual(response.body, b'{"data":null,"errors":[{"message":"Injected failure."}]}')

    def test_a_partial_error_is_a_294_with_its_reason_phrase(self) -> None:
        self.arm("graphql-error-partial")
        received = read_to_end(self.raw(timeline("0"), f"Accept: {ACCEPT['Accept']}\r\n"))
        self.assertTrue(received.startswith(b"HTTP/1.1 294 Partial Success\r\n"), received[:100])
        self.arm("graphql-error-partial")
        self.assert_reply(self.send(timeline("0")), 200, JSON)

    def test_a_partial_error_does_not_change_an_answer_without_data(self) -> None:
        for body, status in [(NULL_DATA[0], 294), (NOT_PARSED[0], 400), (NOT_VALID[0], 422)]:
            plain = self.send(body, ACCEPT)
            self.arm("graphql-error-partial")
            response = self.send(body, ACCEPT)
            self.assert_reply(response, status, GRAPHQL)
            self.assertEqual(response.body, plain.body)

    def test_a_stored_reply_keeps_its_media_type_regardless_of_the_accept_header(self) -> None:
        for first, next_one, moment_id, status, content_type in [
            (ACCEPT, {}, "1", 200, GRAPHQL),
            (ACCEPT, {}, "100", 294, GRAPHQL),
            ({}, ACCEPT, "1", 200, JSON),
            ({}, ACCEPT, "100", 200, JSON),
        ]:
            self.control("reset", {})
            kept = self.send(like(moment_id), {**first, "Idempotency-Key": "k"})
            self.assert_reply(kept, status, content_type)
            replay = self.send(like(moment_id), {**next_one, "Idempotency-Key": "k"})
            self.assert_reply(replay, status, content_type)
            self.assertEqual((replay.headers["Idempotent-Replayed"], replay.body), ("true", kept.body))

    def test_a_partial_error_is_not_stored(self) -> None:
        self.arm("graphql-error-partial")
        self.assert_reply(self.send(like("1"), {**ACCEPT, "Idempotency-Key": "k"}), 294, GRAPHQL)
        replay = self.send(like("1"), {**ACCEPT, "Idempotency-Key": "k"})
        self.assert_reply(replay, 200, GRAPHQL)
        self.assertEqual((replay.headers["Idempotent-Replayed"], list(replay.json)), ("true", ["data"]))


class PlainTests(MediaTestCase):
    def test_replies_are_plain_json_by_default_regardless_of_the_accept_header(self) -> None:
        for body in DATA + NULL_DATA + NO_DATA + WRONG_EXTENSIONS:
            plain = self.send(body)
            self.assert_reply(plain, 200, JSON)
            asked = self.send(body, ACCEPT)
            self.assert_reply(asked, 200, JSON)
            self.assertEqual(asked.body, plain.body)
        for request in NO_REQUESTS:
            self.assert_reply(self.send(request, ACCEPT), 400, JSON)
        self.arm("graphql-error-partial")
        self.assert_reply(self.send(timeline("0"), ACCEPT), 200, JSON)

    def test_invalid_variables_result_in_null_data(self) -> None:
        for bodies, data in [(NOT_PARSED + NOT_VALID, "none"), (NOT_EXECUTED, None)]:
            for body in bodies:
                self.assertEqual(self.send(body).json.get("data", "none"), data)

    def test_an_unknown_media_type_is_rejected(self) -> None:
        process = start("--media-type", "text")
        output, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, output), (2, ""))
        self.assertIn("argument --media-type: invalid choice: 'text'", errors)


class PartialDataTests(ClientTestCase):
    """A data file with a title that isn't text, so that this field fails and the data is partial."""

    folder: ClassVar[tempfile.TemporaryDirectory[str]]
    data: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        seed = json.loads((FOLDER / "data.json").read_bytes())
        seed["timelines"]["0"][1]["title"] = {}
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.data = Path(cls.folder.name) / "data.json"
        cls.data.write_text(json.dumps(seed))

    def setUp(self) -> None:
        self.state = Path(self.folder.name) / self.id()

    def serve(self, media_type: str) -> None:
        """Starts a server with the state of the previous one, which is ended first."""
        self.doCleanups()
        process = start("--data", str(self.data), "--state", str(self.state), "--media-type", media_type)
        self.addCleanup(lambda: self.assertEqual(process.communicate(timeout=TIMEOUT), ("", "")))
        self.port = port_of(process)

    def send_keyed(self, headers: Optional[Mapping[str, str]] = None) -> Response:
        return self.send(like("1"), {"Idempotency-Key": "k", **(headers or {})})

    def assert_partial(self, response: Response, status: int, content_type: str) -> None:
        self.assertEqual((response.status, response.headers["Content-Type"]), (status, content_type))
        ((field, details),) = response.json["data"].items()
        self.assertEqual([moment["title"] for moment in details["moments"][:2]], ["the pic is awesome", None])
        self.assertEqual([error["path"] for error in response.json["errors"]], [[field, "moments", 1, "title"]])

    def test_data_with_errors_is_a_294(self) -> None:
        self.serve("graphql-response")
        self.assert_partial(self.send(timeline("0"), ACCEPT), 294, GRAPHQL)
        self.assert_partial(self.send(timeline("0")), 200, JSON)
        self.serve("json")
        self.assert_partial(self.send(timeline("0"), ACCEPT), 200, JSON)

    def test_a_change_with_errors_is_applied_and_stored_with_its_status(self) -> None:
        self.serve("graphql-response")
        first = self.send_keyed(ACCEPT)
        self.assert_partial(first, 294, GRAPHQL)
        for media_type in ["graphql-response", "graphql-response", "json"]:
            replay = self.send_keyed(ACCEPT)
            self.assert_partial(replay, 294, GRAPHQL)
            self.assertEqual((replay.headers["Idempotent-Replayed"], replay.body), ("true", first.body))
            self.serve(media_type)
        self.assertEqual(self.effects(), ["applied", "replayed", "replayed", "replayed"])
        self.assertEqual(self.likes("1"), ["4", "0"])

    def test_a_partial_error_comes_after_the_other_errors(self) -> None:
        self.serve("graphql-response")
        self.arm("graphql-error-partial")
        response = self.send(timeline("0"), ACCEPT)
        self.assertEqual(response.status, 294)
        self.assertEqual(
            [error["path"][1:] for error in response.json["errors"]], [["moments", 1, "title"], ["moments", 0]]
        )

    def test_a_change_with_errors_and_without_a_key_survives_a_restart(self) -> None:
        self.serve("json")
        self.assert_partial(self.send(like("1")), 200, JSON)
        self.serve("json")
        self.assertEqual(self.likes("1"), ["4", "0"])
        self.assertEqual(self.effects(), ["applied", "read"])
