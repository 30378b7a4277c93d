"""The GraphQL API of the timelines, from the body of a request to the body of its answer."""

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
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    build_schema,
    execute_sync,
    get_operation_ast,
    parse,
    validate,
)

from media import MediaType
from timeline import MomentsDetails, Timelines


def load_schema(path: Path) -> GraphQLSchema:
    return build_schema(path.read_text(encoding="utf-8"))


class BadRequest(Exception):
    """The body isn't a GraphQL request."""


class NotJSON(BadRequest):
    """The body isn't JSON."""


@dataclass(frozen=True)
class GraphQLRequest:
    """The body of a POST, as GraphQL over HTTP defines it."""

    query: str
    variables: dict[str, Any]
    operation_name: Optional[str]

    @classmethod
    def from_body(cls, body: bytes, media_type: MediaType) -> GraphQLRequest:
        """Decodes a body; raises `BadRequest`.

        `extensions` aren't used. They are checked only if the client accepts the GraphQL media type.
        """
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NotJSON(f"The body is not JSON: {error}") from error
        if not isinstance(request, dict):
            raise BadRequest("The body must be a JSON object.")
        query = request.get("query")
        variables = request.get("variables")
        operation_name = request.get("operationName")
        extensions = request.get("extensions")
        if not isinstance(query, str):
            raise BadRequest('"query" must be a string.')
        if variables is not None and not isinstance(variables, dict):
            raise BadRequest('"variables" must be an object or null.')
        if operation_name is not None and not isinstance(operation_name, str):
            raise BadRequest('"operationName" must be a string or null.')
        if media_type is not MediaType.JSON and extensions is not None and not isinstance(extensions, dict):
            raise BadRequest('"extensions" must be an object or null.')
        return cls(query, variables or {}, operation_name)

    @property
    def label(self) -> Optional[str]:
        """The name of the operation, or of its first field; None if the document can't be parsed."""
        if self.operation_name:
            return self.operation_name
        try:
            document = parse(self.query)
        except GraphQLError:
            return None
        return _label(document)

    @property
    def is_mutation(self) -> bool:
        """Whether the operation to execute is a mutation; False if the operation can't be determined."""
        try:
            operation = get_operation_ast(parse(self.query), self.operation_name)
        except GraphQLError:
            return False
        return operation is not None and operation.operation is OperationType.MUTATION

    @property
    def fingerprint(self) -> str:
        """A hash that is equal for equivalent bodies, regardless of the order of their members."""
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
    """The answer to a request, and how it came about."""

    content: dict[str, Any]
    was_parsed: bool
    was_executed: bool
    """False if the document, the operation name or a variable is invalid."""
    has_mutated: bool
    """Whether a field of a mutation was executed, successfully or not."""

    @property
    def has_data(self) -> bool:
        return self.content.get("data") is not None

    def as_json(self, media_type: MediaType) -> dict[str, Any]:
        """Returns the content in the form of the media type.

        With the GraphQL media type, a request that wasn't executed has no `data`. In plain JSON `data` may be null, as
        many servers send it.
        """
        if media_type is MediaType.JSON or self.was_executed:
            return self.content
        return {key: value for key, value in self.content.items() if key != "data"}


def execute(request: GraphQLRequest, timelines: Timelines, schema: GraphQLSchema) -> Answer:
    """Parses, validates and executes a request; every GraphQL error is part of the answer."""
    try:
        document = parse(request.query)
    except GraphQLError as error:
        return _refusal([error], was_parsed=False)
    problems = validate(schema, document)
    if problems:
        return _refusal(problems, was_parsed=True)
    root = _Root(timelines)
    result = execute_sync(
        schema,
        document,
        root_value=root,
        variable_values=request.variables,
        operation_name=request.operation_name,
    )
    # An error during the execution has the path of its field; an error before the execution has none.
    was_executed = result.data is not None or any(error.path for error in result.errors or [])
    return Answer(dict(result.formatted), was_parsed=True, was_executed=was_executed, has_mutated=root.has_mutated)


def _refusal(problems: list[GraphQLError], was_parsed: bool) -> Answer:
    content = {"errors": [problem.formatted for problem in problems]}
    return Answer(content, was_parsed, was_executed=False, has_mutated=False)


class _Root:
    """The root fields, with the names and arguments of the schema.

    An exception in a field becomes a GraphQL error with its message.
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
