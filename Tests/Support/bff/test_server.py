"""The GraphQL endpoint, the control endpoints, the data, and the process of the server."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import unicodedata
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import FOLDER, QUERY, TIMEOUT, ServerTestCase, like, port_of, read_to_end, start, timeline

SEED: dict[str, Any] = json.loads((FOLDER / "data.json").read_bytes())


class GraphQLTests(ServerTestCase):
    def details(self, body: object) -> Any:
        answer = self.send(body).json
        self.assertNotIn("errors", answer)
        (details,) = answer["data"].values()
        return details

    def moment(self, details: Any, moment_id: str) -> Any:
        return next(moment for moment in details["moments"] if moment["id"] == moment_id)

    def test_a_timeline_is_the_data_file_with_a_derived_is_liked(self) -> None:
        for user in SEED["users"]:
            expected = [
                {**moment, "isLiked": user["id"] in [like["id"] for like in moment["likes"]]}
                for moment in SEED["timelines"][user["id"]]
            ]
            self.assertEqual(self.details(timeline(user["id"])), {"userDetails": user, "moments": expected})

    def test_an_answer_without_likes_has_no_is_liked_either(self) -> None:
        moment = self.details(timeline("0", with_likes=False))["moments"][0]
        self.assertEqual(list(moment), ["id", "userDetails", "type", "title", "url", "photos", "createdDate"])

    def test_a_like_is_added_once_after_the_other_likes(self) -> None:
        for _ in range(2):
            moment = self.moment(self.details(like("1")), "1")
            self.assertTrue(moment["isLiked"])
            self.assertEqual(
                moment["likes"],
                SEED["timelines"]["0"][1]["likes"] + [{"id": "0", "avatar": SEED["users"][0]["avatar"]}],
            )
        self.assertEqual(self.details(timeline("0"))["moments"][1]["isLiked"], True)

    def test_an_unlike_removes_only_the_users_like(self) -> None:
        for _ in range(2):
            moment = self.moment(self.details(like("2", is_liked=False)), "2")
            self.assertFalse(moment["isLiked"])
            self.assertEqual([like["id"] for like in moment["likes"]], ["6", "9"])

    def test_an_existing_like_keeps_its_position(self) -> None:
        moment = self.moment(self.details(like("2")), "2")
        self.assertEqual(moment["likes"], SEED["timelines"]["0"][2]["likes"])

    def test_a_like_on_one_timeline_does_not_change_the_other(self) -> None:
        before = self.details(timeline("0"))
        self.details(like("101", user_id="1"))
        self.assertEqual(self.details(timeline("0")), before)
        self.assertEqual(self.likes("101", user_id="1"), ["6", "1"])

    def test_likes_from_many_threads_are_all_kept(self) -> None:
        ids = [moment["id"] for moment in SEED["timelines"]["0"]] * 4
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda moment_id: self.send(like(moment_id)).status, ids))
        self.assertEqual(answers, [200] * len(ids))
        moments = self.details(timeline("0"))["moments"]
        self.assertEqual([moment["isLiked"] for moment in moments], [True] * len(moments))
        self.assertEqual(
            [[like["id"] for like in moment["likes"]].count("0") for moment in moments], [1] * len(moments)
        )

    def test_an_unknown_id_is_a_graphql_error(self) -> None:
        cases = [
            (timeline("7"), 'No user has the id "7".'),
            (like("0", user_id="7"), 'No user has the id "7".'),
            (like("100"), 'The timeline of user "0" has no moment with the id "100".'),
        ]
        for body, message in cases:
            response = self.send(body)
            self.assertEqual(response.status, 200)
            self.assertEqual(response.json["data"], None)
            self.assertEqual([error["message"] for error in response.json["errors"]], [message])

    def test_an_invalid_document_is_a_graphql_error(self) -> None:
        cases = [
            ({"query": "query {"}, "Syntax Error: Expected Name, found <EOF>."),
            ({"query": '{ getMomentsDetailsByUserID(userID: "0") { likes } }'}, "Cannot query field 'likes'"),
            ({"query": QUERY, "variables": {"userID": "0"}}, "Variable '$withLikes' of required type 'Boolean!'"),
            ({"query": QUERY, "variables": {}, "operationName": "other"}, "Unknown operation named 'other'."),
        ]
        for body, message in cases:
            response = self.send(body)
            self.assertEqual(response.status, 200)
            self.assertTrue(response.json["errors"][0]["message"].startswith(message), response.body)

    def test_a_malformed_request_is_a_400(self) -> None:
        cases: list[tuple[object, str]] = [
            (b"{", "The body is not JSON"),
            (b"", "The body is not JSON"),
            (b"[" * 100_000, "The body is not JSON"),
            (b"\xff", "The body is not JSON"),
            ([], "The body must be a JSON object."),
            ({}, '"query" must be a string.'),
            ({"query": QUERY, "variables": []}, '"variables" must be an object or null.'),
            ({"query": QUERY, "operationName": 1}, '"operationName" must be a string or null.'),
        ]
        for body, message in cases:
            response = self.send(body)
            self.assertEqual(response.status, 400)
            self.assertTrue(response.json["errors"][0]["message"].startswith(message), response.body)

    def test_other_content_is_a_415(self) -> None:
        self.assertEqual(self.send(timeline("0"), {"Content-Type": "text/plain"}).status, 415)

    def test_a_body_without_a_length_or_beyond_the_limit_is_rejected(self) -> None:
        for headers, status in [
            ("Transfer-Encoding: chunked", 411),
            ("Content-Length: many", 400),
            ("Content-Length: -1", 400),
            (f"Content-Length: {(1 << 20) + 1}", 413),
        ]:
            with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT) as connection:
                connection.sendall(f"POST /graphql HTTP/1.1\r\n{headers}\r\n\r\n".encode())
                self.assertTrue(read_to_end(connection).startswith(f"HTTP/1.1 {status} ".encode()), headers)

    def test_a_wrong_path_is_a_404(self) -> None:
        self.assertEqual(self.send(timeline("0"), path="/").status, 404)
        self.assertEqual(self.send(b"", method="GET", path="/control").status, 404)

    def test_a_wrong_method_is_a_405(self) -> None:
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]:
            response = self.send(b"", method=method)
            self.assertEqual((response.status, response.headers["Allow"]), (405, "POST"))
        response = self.send(b"", path="/control/requests")
        self.assertEqual((response.status, response.headers["Allow"]), (405, "GET, DELETE"))

    def test_a_connection_serves_one_request_after_another(self) -> None:
        connection = self.connect()
        self.send(timeline("0"), connection=connection)
        first = connection.sock
        self.assertEqual(self.send(b"{", connection=connection).status, 400)
        self.assertEqual(self.send(b"{}", path="/nowhere", connection=connection).status, 404)
        response = self.send(timeline("0"), connection=connection)
        self.assertIs(connection.sock, first)
        self.assertEqual(response.headers["Content-Type"], "application/json; charset=utf-8")
        self.assertEqual(int(response.headers["Content-Length"]), len(response.body))


class ControlTests(ServerTestCase):
    def test_requests_are_recorded_in_order(self) -> None:
        self.send({**timeline("0"), "operationName": "getMomentsDetailsByUserID"})
        self.send(like("1"), {"Idempotency-Key": "5F0C"})
        self.send({"query": '{ getMomentsDetailsByUserID(userID: "7") { userDetails { id } } }'})
        self.send({"query": "query {"})
        self.send(b"{")
        records = self.requests()
        self.assertEqual(
            [record["operation"] for record in records],
            ["getMomentsDetailsByUserID", "updateMomentLike", "getMomentsDetailsByUserID", None, None],
        )
        self.assertEqual(
            [record["variables"] for record in records],
            [{"userID": "0", "withLikes": True}, {"momentID": "1", "userID": "0", "isLiked": True}, {}, {}, {}],
        )
        self.assertEqual([record["idempotencyKey"] for record in records], [None, "5F0C", None, None, None])
        self.assertEqual([record["outcome"] for record in records], ["answered"] * 5)
        self.assertEqual([record["fault"] for record in records], [None] * 5)
        self.assertEqual([record["executions"] for record in records], [1, 1, 1, 1, 0])
        self.assertEqual(
            [record["effect"] for record in records], ["read", "applied", "refused", "refused", "refused"]
        )

    def test_requests_are_cleared_and_the_data_stays(self) -> None:
        self.send(like("1"))
        self.assertEqual(self.send(b"", method="DELETE", path="/control/requests").json, {"status": "ok"})
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4", "0"])
        self.assertEqual(self.effects(), ["read"])

    def test_a_request_in_flight_is_deleted_when_requests_are_cleared(self) -> None:
        self.arm("hold", gate="a")
        connection = self.raw(timeline("0"))
        self.await_gate("a")
        self.send(b"", method="DELETE", path="/control/requests")
        self.open_gate("a")
        self.assertTrue(read_to_end(connection).startswith(b"HTTP/1.1 200 OK"))
        self.assertEqual(self.requests(), [])

    def test_a_control_request_can_wait_for_requests(self) -> None:
        self.arm("hold", gate="a", count=2)
        with ThreadPoolExecutor(4) as pool:
            two_came = pool.submit(self.outcomes, count=2)
            one_settled = pool.submit(self.outcomes, settled=1)
            answers = [pool.submit(self.send, timeline("0")) for _ in range(2)]
            self.assertEqual(two_came.result(), [None, None])
            self.assertFalse(one_settled.done())
            self.open_gate("a")
            self.assertIn("hold", one_settled.result())
            self.assertEqual([answer.result().status for answer in answers], [200, 200])

    def test_an_invalid_control_request_is_a_400(self) -> None:
        for method, path, body, message in [
            ("GET", "requests?settled=x", b"", '"settled" must be a whole number from 0 to 10000.'),
            ("GET", "requests?first=1", b"", 'Unknown argument "first".'),
            ("GET", "gates", b"", '"gate" must be a name of 1 to 100 characters.'),
            ("POST", "gates", b"{}", '"gate" must be a name of 1 to 100 characters.'),
            ("POST", "gates", b'{"open": "a", "close": "b"}', 'Unknown argument "close".'),
            ("POST", "moments", b"{", "The body is not JSON"),
        ]:
            response = self.send(body, method=method, path=f"/control/{path}")
            self.assertEqual(response.status, 400, response.body)
            self.assertTrue(response.json["errors"][0]["message"].startswith(message), response.body)

    def test_recorded_header_names_are_lowercase(self) -> None:
        self.send(timeline("0"), {"X-Client-Version": "2.0 B"})
        headers = self.requests()[0]["headers"]
        self.assertEqual(headers["x-client-version"], "2.0 B")
        self.assertEqual(headers["content-type"], "application/json")

    def test_only_posts_to_graphql_are_recorded(self) -> None:
        self.send(b"", method="GET")
        self.send(timeline("0"), path="/")
        self.send(b"", method="GET", path="/control/health")
        self.assertEqual(self.requests(), [])

    def test_a_reset_restores_data_faults_and_requests(self) -> None:
        self.send(like("1"))
        self.arm("status", count=3)
        self.assertEqual(self.send(timeline("0")).status, 500)
        self.assertEqual(self.control("reset", {}).status, 200)
        self.assertEqual(self.requests(), [])
        self.assertEqual(self.likes("1"), ["4"])

    def test_health_is_ok(self) -> None:
        response = self.send(b"", method="GET", path="/control/health")
        self.assertEqual((response.status, response.json), (200, {"status": "ok"}))

    def test_control_closes_its_connections(self) -> None:
        response = self.send(b"", method="GET", path="/control/health")
        self.assertEqual(response.headers["Connection"], "close")


class DataTests(unittest.TestCase):
    def moments(self) -> list[dict[str, Any]]:
        moments: list[dict[str, Any]] = SEED["timelines"]["0"]
        return moments

    def test_every_moment_has_all_fields(self) -> None:
        fields = ["id", "userDetails", "type", "title", "url", "photos", "createdDate", "likes"]
        for moments in SEED["timelines"].values():
            self.assertEqual([list(moment) for moment in moments], [fields] * len(moments))

    def test_moments_are_newest_first_and_have_unique_ids(self) -> None:
        for moments in SEED["timelines"].values():
            created = [int(moment["createdDate"]) for moment in moments]
            self.assertEqual(created, sorted(set(created), reverse=True))
        ids = [moment["id"] for moments in SEED["timelines"].values() for moment in moments]
        self.assertEqual(ids, [str(number) for number in [*range(16), 100, 101, 102]])

    def test_the_two_known_moments_are_first(self) -> None:
        first, second = self.moments()[:2]
        self.assertEqual(
            (first["userDetails"]["name"], first["title"], first["createdDate"], len(first["photos"])),
            ("Taylor Swift", "the pic is awesome", "1605521360", 1),
        )
        self.assertEqual([like["id"] for like in first["likes"]], ["0"])
        self.assertEqual(
            (second["userDetails"]["name"], second["title"], second["createdDate"], len(second["photos"])),
            ("Mattt", "Low-level programming on iOS", "1605519980", 1),
        )
        self.assertEqual([like["id"] for like in second["likes"]], ["4"])

    def test_the_timeline_has_the_cases_a_screen_must_show(self) -> None:
        moments = self.moments()
        self.assertEqual([moment["id"] for moment in moments if moment["type"] == "URL"], ["3"])
        self.assertEqual([moment["id"] for moment in moments if moment["type"] == "VIDEO"], ["5"])
        self.assertEqual([moment["id"] for moment in moments if not moment["likes"]], ["7"])
        self.assertEqual([moment["id"] for moment in moments if moment["title"] is None], ["12"])
        self.assertEqual(max(len(moment["photos"]) for moment in moments), 6)
        titles = "".join(moment["title"] or "" for moment in moments)
        self.assertIn("\u200d", titles)
        self.assertIn("CJK", {unicodedata.name(character, "").partition(" ")[0] for character in titles})


class ProcessTests(unittest.TestCase):
    def test_the_server_prints_one_line_and_ends_with_its_input(self) -> None:
        process = start()
        port = port_of(process)
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT):
            output, errors = process.communicate("a line is not the end\n", timeout=TIMEOUT)
        self.assertEqual((process.returncode, output, errors), (0, "", ""))

    def test_a_detached_server_outlives_its_input_and_ends_with_a_signal(self) -> None:
        processes = [start("--detached"), start("--detached")]
        for process, number in zip(processes, [signal.SIGTERM, signal.SIGINT]):
            port = port_of(process)
            assert process.stdin
            process.stdin.close()
            process.stdin = None
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT).close()
            process.send_signal(number)
            self.assertEqual(process.communicate(timeout=TIMEOUT), ("", ""))
            self.assertEqual(process.returncode, 0)

    def test_an_attached_server_also_ends_with_a_signal(self) -> None:
        process = start()
        port_of(process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), 0)
        process.communicate()

    def test_the_server_ends_with_a_signal_that_its_parent_blocks(self) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            process = start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        port_of(process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), 0)
        process.communicate()

    def test_a_port_in_use_ends_the_server_with_69(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.assert_refused(
                69, f"server.py: cannot listen on 127.0.0.1:{port}: Address already in use\n", "--port", str(port)
            )

    def test_a_missing_graphql_core_ends_the_server_with_69(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            stub = "raise ModuleNotFoundError(\"No module named 'graphql'\", name='graphql')\n"
            (Path(folder) / "graphql.py").write_text(stub)
            self.assert_refused(
                69,
                "server.py: graphql-core is missing; run: pip install -r requirements.txt\n",
                PYTHONPATH=folder,
            )

    def test_a_missing_or_invalid_data_file_is_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.json"
            missing = f"server.py: cannot read {path}: No such file or directory\n"
            self.assert_refused(66, missing, "--data", str(path))
            for content, problem in [
                ("{}", "'users' is missing"),
                ('{"users": [{"id": "0"}], "timelines": {}}', "'0' is missing"),
                ('{"users": [{"id": "0"}], "timelines": {"0": [1]}}', "'int' object has no attribute 'keys'"),
                ("[]", "list indices must be integers or slices, not str"),
            ]:
                path.write_text(content)
                self.assert_refused(65, f"server.py: {path} is not a data file: {problem}\n", "--data", str(path))

    def test_another_data_file_is_served(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.json"
            path.write_text(json.dumps({"users": SEED["users"][:1], "timelines": {"0": []}}))
            process = start("--data", str(path))
            with socket.create_connection(("127.0.0.1", port_of(process)), timeout=TIMEOUT) as connection:
                body = json.dumps(timeline("0")).encode()
                connection.sendall(
                    b"POST /graphql HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
                    + f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                self.assertTrue(read_to_end(connection).endswith(b'"moments":[]}}}'))
            process.communicate(timeout=TIMEOUT)

    def test_the_server_listens_on_loopback_only(self) -> None:
        for process in [start("--host", host) for host in ["0.0.0.0", "192.168.1.1", "example.com", ""]]:
            _, errors = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 2)
            self.assertIn("is not an IPv4 loopback address", errors)

    def test_a_verbose_server_logs_requests_to_standard_error(self) -> None:
        process = start("--verbose")
        with socket.create_connection(("127.0.0.1", port_of(process)), timeout=TIMEOUT) as connection:
            connection.sendall(b"GET /control/health HTTP/1.1\r\n\r\n")
            read_to_end(connection)
        output, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(output, "")
        self.assertIn('"GET /control/health HTTP/1.1" 200', errors)

    def assert_refused(self, code: int, message: str, *arguments: str, **environment: str) -> None:
        process = start(*arguments, environment={**os.environ, **environment})
        output, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, output, errors), (code, "", message))


if __name__ == "__main__":
    unittest.main()
