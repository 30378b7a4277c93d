"""What tests ask of the servers: GraphQL too, so that tests need no other client."""

from __future__ import annotations

from typing import Any

from ariadne import MutationType, QueryType, make_executable_schema
from ariadne.asgi import GraphQL

from timelines import TIMELINES, Request

TYPES = """
    type Query {
      "The requests of a user whose root field was called, in order."
      requests(userID: ID!): [Request!]!
      "The URL of nginx."
      proxy: String!
    }

    type Mutation {
      "Arms a fault for the next requests of a user, in place of the armed ones; the operation is fetch or like."
      arm(userID: ID!, operation: String!, fault: String!, count: Int!): Boolean!
    }

    type Request {
      operation: String!
      key: String
      wasApplied: Boolean!
    }
"""


def control(proxy: str) -> GraphQL:
    query = QueryType()
    mutation = MutationType()

    @query.field("requests")
    def requests(_: Any, __: Any, userID: str) -> list[Request]:
        return TIMELINES.requests(userID)

    @query.field("proxy")
    def proxy_url(_: Any, __: Any) -> str:
        return proxy

    @mutation.field("arm")
    def arm(_: Any, __: Any, userID: str, operation: str, fault: str, count: int) -> bool:
        TIMELINES.arm(userID, operation, fault, count)
        return True

    return GraphQL(make_executable_schema(TYPES, query, mutation))
