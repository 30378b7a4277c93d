"""The schema of the lecture, without pages and links, and the default schema with them."""

from __future__ import annotations

import json
from typing import Any

from harness import FOLDER, TIMEOUT, ServerTestCase, like, page, start, timeline

INTROSPECTION = """{
  __schema { types { name enumValues { name } fields { name args { name type { ...T } } type { ...T } } } }
}
fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }"""


def without_url(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "query": body["query"].replace(" url", "")}


def written(reference: dict[str, Any]) -> str:
    """Returns a type in the notation of a schema."""
    if reference["kind"] == "NON_NULL":
        return f"{written(reference['ofType'])}!"
    if reference["kind"] == "LIST":
        return f"[{written(reference['ofType'])}]"
    return str(reference["name"])


class SchemaTestCase(ServerTestCase):
    def types(self) -> dict[str, Any]:
        """Returns, by type, the values of the enums, and the fields in the notation of a schema."""
        types = self.send({"query": INTROSPECTION}).json["data"]["__schema"]["types"]
        served: dict[str, Any] = {}
        for kind in types:
            if kind["name"].startswith("__"):
                continue
            fields = []
            for field in kind["fields"] or []:
                arguments = ", ".join(f"{argument['name']}: {written(argument['type'])}" for argument in field["args"])
                listed = f"({arguments})" if arguments else ""
                fields.append(f"{field['name']}{listed}: {written(field['type'])}")
            served[kind["name"]] = [value["name"] for value in kind["enumValues"] or []] or fields
        return served


class LectureSchemaTests(SchemaTestCase):
    arguments = ("--schema", "lecture")

    def refusals(self, body: object) -> list[str]:
        response = self.send(body)
        self.assertEqual((response.status, list(response.json)), (200, ["errors"]))
        return [error["message"] for error in response.json["errors"]]

    def test_the_schema_is_exactly_the_schema_of_the_lecture(self) -> None:
        self.assertEqual(
            self.types(),
            {
                "Query": ["getMomentsDetailsByUserID(userID: ID!): MomentsDetails!"],
                "Mutation": [
                    "updateMomentLike(momentID: ID!, userID: ID!, isLiked: Boolean!): MomentsDetails!"
                ],
                "MomentsDetails": ["userDetails: UserDetails!", "moments: [Moment!]!"],
                "UserDetails": ["id: ID!", "name: String!", "avatar: String!", "backgroundImage: String!"],
                "Moment": [
                    "id: ID!",
                    "userDetails: MomentUserDetails!",
                    "type: MomentType!",
                    "title: String",
                    "photos: [String!]!",
                    "createdDate: String!",
                    "isLiked: Boolean!",
                    "likes: [Like!]!",
                ],
                "MomentUserDetails": ["name: String!", "avatar: String!"],
                "MomentType": ["URL", "PHOTOS", "VIDEO"],
                "Like": ["id: ID!", "avatar: String!"],
                "ID": [],
                "String": [],
                "Boolean": [],
            },
        )

    def test_a_timeline_is_the_data_file_without_links(self) -> None:
        seed = json.loads((FOLDER / "data.json").read_bytes())
        details = self.send(without_url(timeline("0"))).json["data"]["getMomentsDetailsByUserID"]
        self.assertEqual(details["userDetails"], seed["users"][0])
        expected = []
        for moment in seed["timelines"]["0"]:
            del moment["url"]
            expected.append({**moment, "isLiked": "0" in [like["id"] for like in moment["likes"]]})
        self.assertEqual(details["moments"], expected)

    def test_a_like_is_applied_and_answered(self) -> None:
        for body in [like("1"), timeline("0")]:
            (details,) = self.send(without_url(body)).json["data"].values()
            moment = details["moments"][1]
            self.assertEqual((moment["isLiked"], [like["id"] for like in moment["likes"]]), (True, ["4", "0"]))

    def test_a_reset_keeps_the_schema(self) -> None:
        self.control("reset", {})
        self.assertNotIn("Int", self.types())

    def test_pages_are_rejected_by_the_validation(self) -> None:
        field = "getMomentsDetailsByUserID"
        for query, messages in [
            (
                f'{{ {field}(userID: "0", first: 1) {{ moments {{ id }} }} }}',
                [f"Unknown argument 'first' on field 'Query.{field}'."],
            ),
            (
                f'{{ {field}(userID: "0", after: "1") {{ moments {{ id }} }} }}',
                [f"Unknown argument 'after' on field 'Query.{field}'."],
            ),
            (
                f'{{ {field}(userID: "0") {{ pageInfo {{ endCursor }} }} }}',
                ["Cannot query field 'pageInfo' on type 'MomentsDetails'."],
            ),
            (
                f'query q($first: Int) {{ {field}(userID: "0") {{ moments {{ id }} }} }}',
                ["Unknown type 'Int'. Did you mean 'ID'?", "Variable '$first' is never used in operation 'q'."],
            ),
        ]:
            self.assertEqual(self.refusals({"query": query}), messages)
        self.assertEqual(
            self.refusals(page("0", 1)),
            [
                "Unknown type 'Int'. Did you mean 'ID'?",
                f"Unknown argument 'first' on field 'Query.{field}'.",
                f"Unknown argument 'after' on field 'Query.{field}'.",
                "Cannot query field 'pageInfo' on type 'MomentsDetails'.",
            ],
        )
        self.assertEqual([record["effect"] for record in self.requests()], ["refused"] * 5)

    def test_links_are_rejected_by_the_validation_before_anything_is_changed(self) -> None:
        message = "Cannot query field 'url' on type 'Moment'."
        for body in [timeline("0"), like("1")]:
            self.assertIn(" url", body["query"])
            self.assertEqual(self.refusals(body), [message])
        (details,) = self.send(without_url(timeline("0"))).json["data"].values()
        self.assertFalse(details["moments"][1]["isLiked"])


class PagingSchemaTests(SchemaTestCase):
    arguments = ("--schema", "paging")

    def test_the_schema_has_pages_and_links(self) -> None:
        types = self.types()
        self.assertEqual(
            types["Query"],
            ["getMomentsDetailsByUserID(userID: ID!, first: Int, after: String): MomentsDetails!"],
        )
        self.assertIn("pageInfo: PageInfo!", types["MomentsDetails"])
        self.assertIn("url: String", types["Moment"])
        for body in [timeline("0"), like("1"), page("0", 1)]:
            self.assertNotIn("errors", self.send(body).json)


class DefaultSchemaTests(SchemaTestCase):
    def test_the_default_schema_has_pages(self) -> None:
        self.assertIn("PageInfo", self.types())

    def test_an_unknown_schema_is_rejected(self) -> None:
        process = start("--schema", "other")
        output, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, output), (2, ""))
        self.assertIn("argument --schema: invalid choice: 'other'", errors)
