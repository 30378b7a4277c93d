"""The issues of all projects, which only depend on the changes that were applied."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple, Optional


class Reply(NamedTuple):
    status: int
    body: Optional[dict] = None
    etag: Optional[str] = None


class Refused(Exception):
    """A request that isn't possible; it changes nothing."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.reply = Reply(status, {"reason": reason})


class Issues:
    """Not safe for concurrent use."""

    def __init__(self) -> None:
        self.applied: list[dict] = []
        self._issues: dict[str, Optional[dict]] = {}
        """All issues by id, the oldest first; `None` for an issue that was deleted."""
        self._replies: dict[str, Reply] = {}

    def page(self, project: str, after: Optional[str], limit: int) -> Reply:
        """Returns the issues after a cursor, the newest first."""
        issues = [issue for issue in self._issues.values() if issue and issue["project"] == project]
        issues.reverse()
        if after:
            try:
                last = int(base64.urlsafe_b64decode(after))
            except ValueError:
                raise Refused(400, "invalid cursor") from None
            issues = [issue for issue in issues if issue["number"] < last]
        page = issues[:limit]
        cursor = base64.urlsafe_b64encode(str(page[-1]["number"]).encode()).decode() if len(issues) > limit else None
        return Reply(200, {"issues": [_summary(issue) for issue in page], "next": cursor})

    def issue(self, issue_id: str) -> Reply:
        return _detail(200, self._issue(issue_id))

    def apply(self, change: dict) -> Reply:
        """Applies a change, unless one with the same key was applied: then repeats the reply to that one.

        A change has a `key`, a `method`, a `path`, a `body`, and `ifMatch`, the ETag that the issue must have.
        """
        if change["key"] in self._replies:
            return self._replies[change["key"]]
        for method, path, function in _ROUTES:
            match = re.fullmatch(path, change["path"])
            if method == change["method"] and match:
                reply = function(self, match[1], change)
                self._replies[change["key"]] = reply
                self.applied.append(change)
                return reply
        raise Refused(404, "no such path")

    def _create(self, project: str, change: dict) -> Reply:
        body = change["body"]
        if body["id"] in self._issues:
            raise Refused(409, "an issue with this id exists")
        issue = {
            "id": body["id"], "project": project, "number": len(self._issues) + 1, "title": body["title"],
            "state": "open", "body": body.get("body", ""), "comments": [], "version": 1,
        }
        self._issues[issue["id"]] = issue
        return _detail(201, issue)

    def _comment(self, issue_id: str, change: dict) -> Reply:
        issue = self._issue(issue_id)
        issue["comments"].append({"id": change["body"]["id"], "text": change["body"]["text"]})
        issue["version"] += 1
        return _detail(201, issue)

    def _edit(self, issue_id: str, change: dict) -> Reply:
        issue, fields = self._issue(issue_id), change["body"]
        if change["ifMatch"] not in (None, _etag(issue)):
            raise Refused(412, "the issue was changed")
        if fields.get("state") == issue["state"]:
            raise Refused(409, f"the issue is already {issue['state']}")
        issue.update({name: fields[name] for name in ("title", "body", "state", "reason") if name in fields})
        issue["version"] += 1
        return _detail(200, issue)

    def _delete(self, issue_id: str, change: dict) -> Reply:
        self._issue(issue_id)
        self._issues[issue_id] = None
        return Reply(204)

    def _issue(self, issue_id: str) -> dict:
        if issue_id not in self._issues:
            raise Refused(404, "no such issue")
        issue = self._issues[issue_id]
        if issue is None:
            raise Refused(410, "the issue was deleted")
        return issue


_ROUTES = [
    ("POST", "/projects/([^/]+)/issues", Issues._create),
    ("POST", "/issues/([^/]+)/comments", Issues._comment),
    ("PATCH", "/issues/([^/]+)", Issues._edit),
    ("DELETE", "/issues/([^/]+)", Issues._delete),
]


def _etag(issue: dict) -> str:
    return f'"{issue["version"]}"'


def _summary(issue: dict) -> dict:
    summary = {name: issue.get(name) for name in ("id", "number", "title", "state", "reason")}
    return {**summary, "commentCount": len(issue["comments"])}


def _detail(status: int, issue: dict) -> Reply:
    detail = {"issue": _summary(issue), "body": issue["body"], "comments": list(issue["comments"])}
    return Reply(status, detail, _etag(issue))
