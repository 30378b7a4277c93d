"""The timelines as Ariadne serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ariadne import MutationType, ObjectType, QueryType, load_schema_from_path, make_executable_schema
from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLHTTPHandler
from graphql import GraphQLResolveInfo
from starlette.requests import Request
from starlette.responses import Response

from timelines import RETRY_AFTER, TIMELINES, Moment, Throttled, Timeline

query = QueryType()
mutation = MutationType()
moment = ObjectType("Moment")


@query.field("getMomentsDetailsByUserID")
def fetch(_: Any, info: GraphQLResolveInfo, userID: str) -> Timeline:
    return TIMELINES.fetch(userID, info.context["request"].headers.get("Authorization"))


@mutation.field("updateMomentLike")
def like(_: Any, info: GraphQLResolveInfo, momentID: str, userID: str, isLiked: bool) -> Timeline:
    headers = info.context["request"].headers
    try:
        return TIMELINES.like(
            userID, momentID, isLiked, headers.get("Idempotency-Key"), headers.get("Authorization")
        )
    except Throttled:
        info.context["request"].state.is_throttled = True
        raise


@moment.field("title")
def title(moment: Moment, _: GraphQLResolveInfo) -> Any:
    return moment.title()


@moment.field("photos")
def photos(moment: Moment, _: GraphQLResolveInfo) -> Any:
    return moment.photos()


@moment.field("createdDate")
def created_date(moment: Moment, _: GraphQLResolveInfo) -> Any:
    return moment.createdDate()


class Handler(GraphQLHTTPHandler):
    """Ariadne has no header fields for resolvers to set, so a program of its own adds them to the finished response."""

    async def create_json_response(self, request: Request, result: dict[str, Any], success: bool) -> Response:
        response = await super().create_json_response(request, result, success)
        if getattr(request.state, "is_throttled", False):
            response.headers["Retry-After"] = str(RETRY_AFTER)
        return response


schema = make_executable_schema(
    load_schema_from_path(str(Path(__file__).parent / "schema.graphql")), query, mutation, moment
)
app = GraphQL(schema, http_handler=Handler())
