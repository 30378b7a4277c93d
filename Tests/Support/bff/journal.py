"""The durable state of the server, in a database file, or in memory if the server doesn't keep its state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

FORMAT = 2

TABLES = (
    "CREATE TABLE timelines (user_id TEXT PRIMARY KEY, moments TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE replies (key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, status INTEGER NOT NULL,"
    " content_type TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE requests (number INTEGER PRIMARY KEY, record TEXT NOT NULL)",
)


class InvalidState(Exception):
    """The file isn't the state of a server, or is in use by another server."""


@dataclass(frozen=True)
class KeptReply:
    """The stored reply for every request with the same key, and the fingerprint that such a request must have."""

    fingerprint: str
    status: int
    content_type: str
    body: bytes


class Journal:
    """Stores timelines, replies and request records; each method is one transaction.

    A committed transaction survives any signal that kills the process. The journal isn't thread-safe: the lock of the
    stage must be held during every call.
    """

    def __init__(self, path: Optional[Path]) -> None:
        """Opens or creates the file; raises `InvalidState`, or `OSError` if the file can't be opened or created."""
        try:
            self._database = sqlite3.connect(
                str(path) if path else ":memory:", timeout=0, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InvalidState("another server has it open") from error
            raise OSError(None, str(error)) from error
        except sqlite3.DatabaseError as error:
            raise InvalidState(str(error)) from error

    def _prepare(self) -> None:
        # Only one server may use a file, because two servers would not see each other's changes.
        self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        (found,) = self._database.execute("PRAGMA user_version").fetchone()
        if found == FORMAT:
            return
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if found or tables:
            raise InvalidState(f"it has format {found} instead of {FORMAT}")
        with self._transaction():
            for table in TABLES:
                self._database.execute(table)
            self._database.execute(f"PRAGMA user_version={FORMAT}")

    def timelines(self) -> dict[str, Any]:
        """Returns the moments of each user whose timeline was changed."""
        return {user_id: json.loads(moments) for user_id, moments in self._rows("timelines", "user_id, moments")}

    def replies(self) -> dict[str, KeptReply]:
        rows = self._rows("replies", "key, fingerprint, status, content_type, body")
        return {key: KeptReply(*reply) for key, *reply in rows}

    def requests(self) -> list[tuple[int, dict[str, Any]]]:
        """Returns the records with their numbers, in order."""
        rows = self._rows("requests", "number, record", "ORDER BY number")
        return [(number, json.loads(record)) for number, record in rows]

    def write_timelines(self, timelines: Mapping[str, Any]) -> None:
        with self._transaction():
            self._put_timelines(timelines)

    def write_execution(
        self,
        timelines: Mapping[str, Any],
        kept: Optional[tuple[str, KeptReply]],
        number: int,
        record: Mapping[str, Any],
    ) -> None:
        """Writes a change, its reply if it has a key, and its record in one transaction."""
        with self._transaction():
            self._put_timelines(timelines)
            if kept:
                key, reply = kept
                self._database.execute(
                    "INSERT INTO replies VALUES (?, ?, ?, ?, ?)",
                    (key, reply.fingerprint, reply.status, reply.content_type, reply.body),
                )
            self.update_request(number, record)

    def add_request(self, number: int, record: Mapping[str, Any]) -> None:
        self._database.execute("INSERT INTO requests VALUES (?, ?)", (number, json.dumps(record)))

    def update_request(self, number: int, record: Mapping[str, Any]) -> None:
        """Replaces a record, unless it was deleted in the meantime."""
        self._database.execute("UPDATE requests SET record = ? WHERE number = ?", (json.dumps(record), number))

    def clear_requests(self) -> None:
        self._database.execute("DELETE FROM requests")

    def clear(self) -> None:
        with self._transaction():
            for table in ("timelines", "replies", "requests"):
                self._database.execute(f"DELETE FROM {table}")

    def _rows(self, table: str, columns: str, order: str = "") -> list[tuple[Any, ...]]:
        return self._database.execute(f"SELECT {columns} FROM {table} {order}").fetchall()

    def _put_timelines(self, timelines: Mapping[str, Any]) -> None:
        self._database.executemany(
            "REPLACE INTO timelines VALUES (?, ?)",
            [(user_id, json.dumps(moments)) for user_id, moments in timelines.items()],
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._database)


class _Transaction:
    """A transaction that is committed at the end of a `with` block, or rolled back if the block raises an exception."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._database.execute("ROLLBACK" if kind else "COMMIT")
