"""GraphQL over the timelines: from a request's body to the body of its answer."""

from __future__ import annotations

import hashlib
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
    OperationType,
    build_schema,
    execute_sync,
    get_operation_ast,
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

    @property
    def is_mutation(self) -> bool:
        """Whether the operation to execute is a mutation; False if there is no such operation."""
        try:
            operation = get_operation_ast(parse(self.query), self.operation_name)
        except GraphQLError:
            return False
        return operation is not None and operation.operation is OperationType.MUTATION

    @property
    def fingerprint(self) -> str:
        """The same for two bodies that ask for the same, whatever the order of their members."""
        content = [self.query, self.variables, self.operation_name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _label(document: DocumentNode) -> Optional[str]:
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            if definition.name:
                return definition.name.value
            for selection in definition.selection_set.selections:
                if isinstance(selection, FieldNode):
                    return selection.name.value
    return None


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and what was behind it."""

    body: bytes
    has_errors: bool
    has_mutated: bool
    """Whether a mutation's field was run, with success or not; False if the document or a variable forbade it."""


def execute(request: GraphQLRequest, timelines: Timelines) -> Answer:
    """Parses, validates and executes the request; every GraphQL error is part of the answer."""
    root = _Root(timelines)
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
                    root_value=root,
                    variable_values=request.variables,
                    operation_name=request.operation_name,
                ).formatted
            )
    return Answer(encode(answer), "errors" in answer, root.has_mutated)


def encode(value: object) -> bytes:
    """JSON in UTF-8, with text as it is instead of escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class _Root:
    """The root fields, named as the schema names them and their arguments.

    What a field raises becomes a GraphQL error with that message.
    """

    def __init__(self, timelines: Timelines) -> None:
        self._timelines = timelines
        self.has_mutated = False

    def getMomentsDetailsByUserID(
        self, _info: GraphQLResolveInfo, userID: str, first: Optional[int] = None, after: Optional[str] = None
    ) -> MomentsDetails:
        return self._timelines.details(userID, first, after)

    def updateMomentLike(
        self, _info: GraphQLResolveInfo, momentID: str, userID: str, isLiked: bool
    ) -> MomentsDetails:
        self.has_mutated = True
        return self._timelines.update_like(momentID, userID, isLiked)
