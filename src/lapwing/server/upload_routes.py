"""The route by which curators upload a file of data; registering it is another request."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from anyio import to_thread
from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from lapwing.documents.preparation_document import UploadDocument, UploadRulesDocument
from lapwing.errors import CatalogError, InvalidParameter, NotAuthorised, TooManyRequests
from lapwing.server.middleware import size_of
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import CURATOR, OfService, new_router
from lapwing.server.uploads.arriving import drain, gathered, in_time
from lapwing.server.uploads.refused import UploadRefused
from lapwing.server.uploads.uploads import Upload

PATH: Final = "/v1/files"
router: Final = new_router(tags=["admin"])


@router.get("/v1/uploads")
def rules(service: OfService, caller: Caller = CURATOR) -> UploadRulesDocument:
    """Show to which folders files can be uploaded, and what uploads are limited to."""
    return service.uploads.rules()


@router.put(
    PATH,
    status_code=201,
    responses=described_by(UploadDocument, status=201),
    openapi_extra={
        **may_raise(InvalidParameter, NotAuthorised, TooManyRequests, CatalogError, UploadRefused),
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
    },
)
async def upload(
    request: Request,
    service: OfService,
    name: Annotated[str, Query(min_length=1, max_length=1000, description="The name of the file.")],
    folder: Annotated[str | None, Query(max_length=4096, description="A folder of the service.")] = None,
    replace: Annotated[bool, Query(description="Whether a file of this name may be replaced.")] = False,
    caller: Caller = CURATOR,
) -> Response:
    """Upload a data file as the body: CSV, TSV or Parquet. Lapwing checks the file before it stores it."""
    arriving = request.stream()
    body = in_time(arriving, service.uploads.limits)
    begun: Upload | None = None
    try:
        begun = await run_in_threadpool(
            service.uploads.begin,
            caller,
            folder,
            name,
            size=size_of(request.scope["headers"]),
            replace=replace,
        )
        document = await _stored(begun, body)
    except ClientDisconnect:
        return Response(status_code=400)  # there is nobody to answer
    except Exception:
        await drain(arriving)
        raise
    finally:
        if begun is not None:
            await run_in_threadpool(begun.close)
    return json_response(document, status=201)


async def _stored(upload: Upload, body: AsyncIterator[bytes]) -> UploadDocument:
    async for chunk in gathered(body):
        await run_in_threadpool(upload.write, chunk)
    return await to_thread.run_sync(upload.finish, limiter=upload.uploads.turns)
