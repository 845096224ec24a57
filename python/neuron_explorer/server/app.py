# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The web application: the built browser app, the questions it asks, and the profile manager's changes."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .. import drawing, prepared
from ..profiles import ProfileError, ProfileStore, check_magic
from . import views
from .processing import Processing
from .query import QueryError, Tables
from .security import TOKEN_COOKIE, Protection

logger = logging.getLogger("neuron_explorer")
APP_FOLDER = Path(__file__).parent.parent / "app" / "web"
MAX_UPLOAD_BYTES = 5 * 2**30
MAX_BODY_BYTES = 4 * 2**20
MAX_ROWS = 100_000
ARROW = "application/vnd.apache.arrow.stream"

NOT_BUILT = """<!doctype html><html lang="en"><title>Neuron Explorer</title>
<body style="font:16px sans-serif;margin:3em"><h1>The browser app is not built</h1>
<p>Run <code>./dev build</code> in the source tree, which builds it with Node.</p>"""


def number(request: Request, name: str, default: int | None = None, low: int = 0, high: int = 2**62) -> int | None:
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        value = int(float(text)) if not text.lstrip("-").isdigit() else int(text)
    except (ValueError, OverflowError) as error:
        raise QueryError(f"expected a number for {name} but got {text!r}") from error
    if not low <= value <= high:
        raise QueryError(f"expected {name} between {low} and {high} but got {value}")
    return value


def required(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise QueryError(f"expected the parameter {name}")
    return value


class Explorer:
    """Handlers of the interface; the folder that a request names is resolved in one place."""

    def __init__(self, store: ProfileStore, max_upload_bytes: int = MAX_UPLOAD_BYTES):
        self.store = store
        self.tables = Tables(store.data_path)
        self.processing = Processing(store)
        self.max_upload_bytes = max_upload_bytes

    def folder(self, request: Request) -> tuple[Path, str]:
        device = request.path_params["device"]
        return self.store.device_folder(
            request.path_params["name"], device
        ), "system" if device == "system" else "device"

    async def profiles(self, request: Request) -> Response:
        entries = await run_in_threadpool(self.store.list)
        for entry in entries:
            if state := self.processing.state(entry["name"]):
                entry.update(state)
        known = {entry["name"] for entry in entries}
        entries += [
            {"name": name, "kind": "", "tags": [], "warnings": [], "devices": [], **state}
            for name, state in self.processing.states().items()
            if name not in known
        ]
        return JSONResponse({"profiles": entries, "data_path": str(self.store.data_path)})

    async def profile(self, request: Request) -> Response:
        name = request.path_params["name"]

        def describe():
            description = self.store.describe(name)
            folder = self.store.folder(name)
            description["tables"] = self.tables.names(folder)
            description["device_tables"] = {
                device: self.tables.names(self.store.device_folder(name, device)) for device in description["devices"]
            }
            description["annotations"] = self.store.annotations(name)
            return description

        return JSONResponse(await run_in_threadpool(describe))

    async def drawn(self, request: Request) -> Response:
        """Arrow streams for the timeline."""
        folder, kind = self.folder(request)
        what = request.path_params["what"]
        by = request.query_params.get("by", "operator")
        if what == "colors" and by not in drawing.COLOR_COLUMNS:
            raise QueryError(f"expected one of {', '.join(drawing.COLOR_COLUMNS)} but got {by!r}")
        if what not in ("slices", "counters", "colors", "overview") or (what == "overview" and kind != "device"):
            raise QueryError(f"expected slices, counters, colors or overview (of a device profile) but got {what!r}")
        path = await run_in_threadpool(prepared.stream_file, folder, kind, what, by)
        return LargeFile(path, media_type=ARROW, headers={"Cache-Control": "private, max-age=0, must-revalidate"})

    def warm(self, name: str) -> None:
        prepared.prepare(self.store, name)

    async def rows(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        columns = request.query_params.get("columns")
        found = await run_in_threadpool(
            self.tables.rows,
            folder,
            request.path_params["table"],
            limit=number(request, "limit", 1000, 0, MAX_ROWS),
            offset=number(request, "offset", 0),
            order=request.query_params.get("order"),
            descending=request.query_params.get("descending") == "1",
            columns=columns.split(",") if columns else None,
        )
        return JSONResponse({"rows": found})

    async def row(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        table = request.path_params["table"]
        found = await run_in_threadpool(self.tables.row, folder, table, number(request, "row", 0))
        return JSONResponse(found)

    async def links(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        found = await run_in_threadpool(
            self.tables.links, folder, request.path_params["table"], number(request, "id", 0, -(2**62))
        )
        return JSONResponse(found)

    async def search(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        found = await run_in_threadpool(
            self.tables.search,
            folder,
            request.path_params["table"],
            required(request, "field"),
            required(request, "text"),
            exact=request.query_params.get("exact") == "1",
            limit=number(request, "limit", 200, 1, 5000),
            offset=number(request, "offset", 0),
        )
        return JSONResponse(found)

    async def fields(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        return JSONResponse(await run_in_threadpool(self.tables.fields, folder, request.path_params["table"]))

    async def chain(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        return JSONResponse(await run_in_threadpool(self.tables.dependency_chain, folder, number(request, "row", 0)))

    async def view(self, request: Request) -> Response:
        folder, _ = self.folder(request)
        what = request.path_params["view"]
        if what == "statistics":
            tracks = request.query_params.getlist("track") or None
            found = await run_in_threadpool(
                views.statistics,
                self.tables,
                folder,
                number(request, "start", None, -(2**62)),
                number(request, "end", None, -(2**62)),
                tracks,
            )
        elif what == "operators":
            found = await run_in_threadpool(views.operators, self.tables, folder)
        elif what == "lines":
            found = await run_in_threadpool(views.lines, self.tables, folder)
        elif what == "stack":
            found = {"frames": await run_in_threadpool(views.stack, self.tables, folder, required(request, "frames"))}
        elif what == "frames":
            frames = required(request, "frames").split(",")
            found = {"rows": await run_in_threadpool(views.events_of_frames, self.tables, folder, frames)}
        elif what == "allocations":
            found = await run_in_threadpool(views.allocations, self.tables, folder, number(request, "partition"))
        else:
            raise QueryError(f"no view is called {what!r}")
        return JSONResponse(found)

    async def body(self, request: Request) -> object:
        data = bytearray()
        async for chunk in request.stream():
            data.extend(chunk)
            if len(data) > MAX_BODY_BYTES:
                raise ProfileError(f"expected at most {MAX_BODY_BYTES} bytes")
        try:
            return json.loads(data or b"null")
        except ValueError as error:
            raise ProfileError(f"expected JSON: {error}") from error

    async def update(self, request: Request) -> Response:
        changes = await self.body(request)
        if not isinstance(changes, dict):
            raise ProfileError("expected an object with tags, favourite or folder")
        return JSONResponse(await run_in_threadpool(self.store.update, request.path_params["name"], changes))

    async def delete(self, request: Request) -> Response:
        name = request.path_params["name"]
        if self.processing.running(name):
            raise ProfileError(f"profile {name!r} is being processed: delete it when that has ended")
        await run_in_threadpool(self.store.delete, name)
        self.processing.forget(name)
        return Response(status_code=204)

    async def annotations(self, request: Request) -> Response:
        found = await self.body(request)
        await run_in_threadpool(self.store.save_annotations, request.path_params["name"], found)
        return Response(status_code=204)

    async def upload(self, request: Request) -> Response:
        """One file of an upload, as the raw body: counted while it arrives, in place only when it is complete."""
        target = self.store.upload_target(request.path_params["name"], request.path_params["file"])
        announced = request.headers.get("content-length", "")
        if announced.isdigit():
            if int(announced) > self.max_upload_bytes:
                raise ProfileError(f"{target.name} has {announced} bytes: at most {self.max_upload_bytes} are taken")
            if int(announced) > shutil.disk_usage(self.store.data_path).free:
                raise ProfileError(f"{target.name} has {announced} bytes, more than the data folder's disk has left")
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        size = 0
        try:
            with temporary.open("wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.max_upload_bytes:
                        raise ProfileError(
                            f"{target.name} is larger than the {self.max_upload_bytes} bytes that are taken"
                        )
                    file.write(chunk)
            check_magic_as(temporary, target.name)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return JSONResponse({"file": request.path_params["file"], "bytes": size}, status_code=201)

    async def process(self, request: Request) -> Response:
        options = await self.body(request) or {}
        name = request.path_params["name"]
        await run_in_threadpool(self.processing.start, name, options if isinstance(options, dict) else {})
        return JSONResponse(self.processing.state(name) or {}, status_code=202)


def check_magic_as(path: Path, name: str) -> None:
    """The check by the final name, as the temporary one has another suffix."""
    probe = path.with_name(f".probe-{secrets.token_hex(4)}-{name}")
    os.link(path, probe)
    try:
        check_magic(probe)
    except ProfileError as error:
        raise ProfileError(str(error).replace(probe.name, name)) from None
    finally:
        probe.unlink(missing_ok=True)


async def refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=404 if "no profile" in str(error) else 400)


async def broken(request: Request, error: Exception) -> Response:
    logger.exception("request %s failed", request.url.path)
    return JSONResponse(
        {"error": f"the server failed on this request: {type(error).__name__}: {error}"}, status_code=500
    )


def create_app(
    data_path=None,
    token: str | None = None,
    hosts=("127.0.0.1", "localhost"),
    max_upload_bytes: int = MAX_UPLOAD_BYTES,
    app_folder: Path = APP_FOLDER,
) -> Starlette:
    """The application. Without a token nothing can be changed through it."""
    explorer = Explorer(ProfileStore(data_path), max_upload_bytes)

    async def index(request: Request) -> Response:
        page = app_folder / "index.html"
        response = FileResponse(page) if page.is_file() else Response(NOT_BUILT, media_type="text/html")
        response.headers["Cache-Control"] = "no-cache"
        offered = request.query_params.get("token")
        if token and offered and secrets.compare_digest(offered.encode(), token.encode()):
            # The command line opens this address once; afterwards the cookie speaks for the browser.
            response = Response(status_code=303, headers={"Location": "/"})
            response.set_cookie(TOKEN_COOKIE, token, httponly=True, samesite="strict", path="/")
        return response

    async def missing(request: Request) -> Response:
        return PlainTextResponse("not found", status_code=404)

    base = "/api/profiles/{name}"
    device = base + "/{device}"
    routes = [
        Route("/", index),
        Route("/api/profiles", explorer.profiles),
        Route(base, explorer.profile),
        Route(base, explorer.update, methods=["PATCH"]),
        Route(base, explorer.delete, methods=["DELETE"]),
        Route(base + "/annotations", explorer.annotations, methods=["PUT"]),
        Route(base + "/process", explorer.process, methods=["POST"]),
        Route(base + "/files/{file:path}", explorer.upload, methods=["PUT"]),
        Route(device + "/drawn/{what}", explorer.drawn),
        Route(device + "/rows/{table}", explorer.rows),
        Route(device + "/row/{table}", explorer.row),
        Route(device + "/links/{table}", explorer.links),
        Route(device + "/search/{table}", explorer.search),
        Route(device + "/fields/{table}", explorer.fields),
        Route(device + "/chain", explorer.chain),
        Route(device + "/view/{view}", explorer.view),
        Route("/api/{rest:path}", missing),
    ]
    if app_folder.is_dir():
        routes.append(Mount("/", StaticFiles(directory=app_folder, follow_symlink=False)))
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(Protection, token=token),
            # Streams of columns go over loopback uncompressed: packing them costs more than sending them.
            Middleware(SelectiveGZip, minimum_size=2048, compresslevel=4),
        ],
        exception_handlers={ProfileError: refused, QueryError: refused, 500: broken},
    )
    application.state.explorer = explorer
    return application


class LargeFile(FileResponse):
    # Each piece costs a change of threads: with the usual 64 KiB that would be most of the time.
    chunk_size = 4 * 2**20


class SelectiveGZip(GZipMiddleware):
    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and "/drawn/" in scope["path"]:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
