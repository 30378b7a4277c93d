"""Pages of a timeline, with cursors that identify a moment."""

from __future__ import annotations

import json
from typing import Any, Optional

from harness import ServerTestCase, like, page


class PagingTests(ServerTestCase):
    def page(self, first: Optional[int] = None, after: Optional[str] = None, user_id: str = "0") -> tuple[Any, Any]:
        """Returns the ids of the page's moments, and its `pageInfo`."""
        answer = self.send(page(user_id, first, after)).json
        self.assertNotIn("errors", answer)
        details = answer["data"]["getMomentsDetailsByUserID"]
        return [moment["id"] for moment in details["moments"]], details["pageInfo"]

    def insert(self, moment_id: str, **arguments: Any) -> Any:
        response = self.control("moments", {"userID": "0", "id": moment_id, **arguments})
        self.assertEqual(response.status, 200)
        return response.json

    def refusals(self, body: object) -> list[str]:
        answer = self.send(body).json
        self.assertEqual(answer["data"], None)
        return [error["message"] for error in answer["errors"]]

    def test_all_pages_together_are_the_timeline(self) -> None:
        pages = []
        after = None
        for has_next_page in [True, True, False]:
            ids, info = self.page(6, after)
            pages.append([int(moment_id) for moment_id in ids])
            after = info["endCursor"]
            self.assertEqual(info["hasNextPage"], has_next_page)
        self.assertEqual(pages, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15]])

    def test_the_page_without_arguments_is_the_whole_timeline(self) -> None:
        ids, info = self.page()
        self.assertEqual(ids, [str(number) for number in range(16)])
        self.assertEqual(info["hasNextPage"], False)
        self.assertEqual(self.page(after=info["endCursor"]), ([], {"endCursor": None, "hasNextPage": False}))

    def test_a_cursor_without_a_limit_returns_all_further_moments(self) -> None:
        _, info = self.page(14)
        self.assertEqual(self.page(after=info["endCursor"])[0], ["14", "15"])

    def test_a_page_that_ends_with_the_timeline_is_the_last_page(self) -> None:
        _, info = self.page(8)
        ids, last = self.page(8, info["endCursor"])
        self.assertEqual((ids[0], ids[-1], info["hasNextPage"], last["hasNextPage"]), ("8", "15", True, False))

    def test_an_insertion_at_the_head_does_not_shift_pages(self) -> None:
        _, info = self.page(4)
        second = self.page(4, info["endCursor"])
        self.insert("new")
        self.assertEqual(self.page(4, info["endCursor"]), second)
        self.assertEqual(self.page(4)[0], ["new", "0", "1", "2"])

    def test_a_like_does_not_shift_pages(self) -> None:
        _, info = self.page(2)
        self.send(like("1"))
        self.assertEqual(self.page(2), (["0", "1"], info))
        self.assertEqual(self.page(2, info["endCursor"])[0], ["2", "3"])

    def test_an_inserted_moment_is_by_the_user_and_the_newest(self) -> None:
        moment = self.insert("new", title="新的")
        self.assertEqual((moment["userDetails"]["name"], moment["title"]), ("Jake Lin", "新的"))
        self.assertEqual(moment["createdDate"], "1605521420")
        self.assertEqual(self.insert("newer")["createdDate"], "1605521480")
        self.assertEqual(self.insert("newest")["title"], None)
        self.send(like("new"))
        self.assertEqual(self.likes("new"), ["0"])
        self.assertEqual(self.page(3)[0], ["newest", "newer", "new"])

    def test_a_moment_that_cannot_be_inserted_is_a_400(self) -> None:
        for body, message in [
            ({"userID": "0", "id": "100"}, 'A moment with the id "100" already exists.'),
            ({"userID": "7", "id": "new"}, 'No user has the id "7".'),
            ({"userID": "0"}, '"id" must be a nonempty string.'),
            ({"id": "new"}, '"userID" must be a nonempty string.'),
            ({"userID": "0", "id": "new", "title": 1}, '"title" must be a nonempty string.'),
            ({"userID": "0", "id": "new", "likes": []}, 'Unknown argument "likes".'),
        ]:
            response = self.control("moments", body)
            self.assertEqual((response.status, response.json["errors"][0]["message"]), (400, message))
        self.assertEqual(self.page(1)[0], ["0"])

    def test_a_page_size_out_of_range_is_an_error(self) -> None:
        self.assertEqual(len(self.page(100)[0]), 16)
        for first in [0, -1, 101]:
            self.assertEqual(self.refusals(page("0", first)), [f'"first" must be from 1 to 100, not {first}.'])

    def test_a_cursor_of_another_timeline_or_an_invalid_cursor_is_an_error(self) -> None:
        _, info = self.page(1, user_id="1")
        for cursor in [info["endCursor"], "", "0", "\U0001f600"]:
            message = f'The timeline of user "0" has no cursor "{cursor}".'
            self.assertEqual(self.refusals(page("0", 1, cursor)), [message])

    def test_a_mutation_replies_with_the_whole_timeline_as_the_last_page(self) -> None:
        body = like("1")
        body["query"] = body["query"].replace("userDetails {", "pageInfo { endCursor hasNextPage } userDetails {", 1)
        details = json.loads(self.send(body).body)["data"]["updateMomentLike"]
        self.assertEqual(details["pageInfo"], {"endCursor": self.page()[1]["endCursor"], "hasNextPage": False})
        self.assertEqual(len(details["moments"]), 16)
