"""GraphQL over the timelines: from a request's body to the body of its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLResolveInfo,
    OperationDefinitionNode,
    build_schema,
    execute_sync,
    parse,
    validate,
)

from timeline import MomentsDetails, Timelines

SCHEMA = build_schema((Path(__file__).parent / "schema.graphql").read_text(encoding="utf-8"))


class BadRequest(Exception):
    """The body is not a GraphQL request, so there is nothing to execute."""


@dataclass(frozen=True)
class GraphQLRequest:
    """The body of a POST, as GraphQL over HTTP defines it."""

    query: str
    variables: dict[str, Any]
    operation_name: Optional[str]

    @classmethod
    def from_body(cls, body: bytes) -> GraphQLRequest:
        """Decodes a body; raises `BadRequest`."""
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"The body is not JSON: {error}") from error
        if not isinstance(request, dict):
            raise BadRequest("The body must be a JSON object.")
        query = request.get("query")
        variables = request.get("variables")
        operation_name = request.get("operationName")
        if not isinstance(query, str):
            raise BadRequest('"query" must be a string.')
        if variables is not None and not isinstance(variables, dict):
            raise BadRequest('"variables" must be an object or null.')
        if operation_name is not None and not isinstance(operation_name, str):
            raise BadRequest('"operationName" must be a string or null.')
        return cls(query, variables or {}, operation_name)

    @property
    def label(self) -> Optional[str]:
        """The operation's name, else its first field's; None if the document does not parse."""
        if self.operation_name:
            return self.operation_name
        try:
            document = parse(self.query)
        except GraphQLError:
            return None
        return _label(document)


def _label(document: DocumentNode) -> Optional[str]:
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            if definition.name:
                return definition.name.value
            for selection in definition.selection_set.selections:
                if isinstance(selection, FieldNode):
                    return selection.name.value
    return None


def execute(request: GraphQLRequest, timelines: Timelines) -> bytes:
    """Parses, validates and executes the request; every GraphQL error is part of the answer."""
    answer: dict[str, Any]
    try:
        document = parse(request.query)
    except GraphQLError as error:
        answer = {"errors": [error.formatted]}
    else:
        problems = validate(SCHEMA, document)
        if problems:
            answer = {"errors": [problem.formatted for problem in problems]}
        else:
            answer = dict(
                execute_sync(
                    SCHEMA,
                    document,
                    root_value=_root(timelines),
                    variable_values=request.variables,
                    operation_name=request.operation_name,
                ).formatted
            )
    return encode(answer)


def encode(value: object) -> bytes:
    """JSON in UTF-8, with text as it is instead of escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _root(timelines: Timelines) -> dict[str, Any]:
    """The root fields, with the arguments' names as the schema spells them.

    What a field raises becomes a GraphQL error with that message.
    """

    def details(_info: GraphQLResolveInfo, userID: str) -> MomentsDetails:
        return timelines.details(userID)

    def update_like(_info: GraphQLResolveInfo, momentID: str, userID: str, isLiked: bool) -> MomentsDetails:
        return timelines.update_like(momentID, userID, isLiked)

    return {"getMomentsDetailsByUserID": details, "updateMomentLike": update_like}
