"""The media types of replies: which one a request gets, and which status goes with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

PARTIAL_SUCCESS = 294

REASONS: Mapping[int, str] = {PARTIAL_SUCCESS: "Partial Success"}
"""The phrases of statuses that the standard library does not know."""


class MediaType(Enum):
    JSON = "application/json"
    GRAPHQL_RESPONSE = "application/graphql-response+json"

    @property
    def content_type(self) -> str:
        return f"{self.value}; charset=utf-8"

    @property
    def malformed_status(self) -> int:
        """The status of a reply to JSON that is no GraphQL request."""
        return 400 if self is MediaType.JSON else 422

    def status(self, answer: Mapping[str, Any], was_parsed: bool) -> int:
        """The status of a reply with that answer: plain JSON has one for all of GraphQL.

        Without data it tells a document that could not be parsed from a request that could not be executed.
        """
        if self is MediaType.JSON:
            return 200
        if "data" not in answer:
            return 422 if was_parsed else 400
        return PARTIAL_SUCCESS if "errors" in answer else 200


def negotiated(accept: str) -> MediaType:
    """The media type that an Accept header asks for.

    It must list the one of GraphQL by name: a client that takes anything may be one that knows only plain JSON.
    """
    qualities = _qualities(accept)
    plain = next((qualities[name] for name in (MediaType.JSON.value, "application/*", "*/*") if name in qualities), 0.0)
    graphql = qualities.get(MediaType.GRAPHQL_RESPONSE.value, 0.0)
    return MediaType.GRAPHQL_RESPONSE if graphql > 0 and graphql >= plain else MediaType.JSON


def _qualities(accept: str) -> dict[str, float]:
    """The weight of each media range by its name in lower case; one whose weight cannot be read is left out."""
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
    """JSON in UTF-8, with text as it is instead of escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
