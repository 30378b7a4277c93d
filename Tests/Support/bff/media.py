"""The media types of replies: their negotiation, and their HTTP statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

PARTIAL_SUCCESS = 294

REASONS: Mapping[int, str] = {PARTIAL_SUCCESS: "Partial Success"}
"""The reason phrases of statuses that the standard library doesn't define."""


class MediaType(Enum):
    JSON = "application/json"
    GRAPHQL_RESPONSE = "application/graphql-response+json"

    @property
    def content_type(self) -> str:
        return f"{self.value}; charset=utf-8"

    @property
    def malformed_status(self) -> int:
        """The status of a reply to JSON that isn't a GraphQL request."""
        return 400 if self is MediaType.JSON else 422

    def status(self, answer: Mapping[str, Any], was_parsed: bool) -> int:
        """Returns the status of a reply with the answer.

        Plain JSON always has the status 200. With the GraphQL media type, the status of an answer without `data`
        distinguishes a document that couldn't be parsed from a request that couldn't be executed.
        """
        if self is MediaType.JSON:
            return 200
        if "data" not in answer:
            return 422 if was_parsed else 400
        return PARTIAL_SUCCESS if "errors" in answer else 200


def negotiated(accept: str) -> MediaType:
    """Returns the media type for an Accept header.

    The header must list the GraphQL media type by name, because a client that accepts any type may only know plain
    JSON.
    """
    qualities = _qualities(accept)
    plain = next((qualities[name] for name in (MediaType.JSON.value, "application/*", "*/*") if name in qualities), 0.0)
    graphql = qualities.get(MediaType.GRAPHQL_RESPONSE.value, 0.0)
    return MediaType.GRAPHQL_RESPONSE if graphql > 0 and graphql >= plain else MediaType.JSON


def _qualities(accept: str) -> dict[str, float]:
    """Returns the weight of each media range by its lowercase name; ranges with an invalid weight are ignored."""
    qualities: dict[str, float] = {}
    for media_range in accept.split(","):
        name, *parameters = [part.strip().lower() for part in media_range.split(";")]
        weights = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        try:
            quality = float(weights[0]) if weights else 1.0
        except ValueError:
            continue
        if 0 <= quality <= 1:
            qualities[name] = max(quality, qualities.get(name, 0.0))
    return qualities


def encode(value: object) -> bytes:
    """Encodes a value as JSON in UTF-8, without escaping non-ASCII text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
