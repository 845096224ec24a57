# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Who may change something, and what a page of ours may load.

Any page that a browser shows can send requests to a port on loopback, and so can any other user of the machine. Reading
is kept from other pages by the same-origin policy together with the check of the host name; writing asks in addition
for a request of our own page and for a token that the command line prints.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_COOKIE = "neuron_explorer_token"
TOKEN_HEADER = "x-neuron-explorer-token"
SAFE_METHODS = frozenset(("GET", "HEAD"))

CONTENT_SECURITY_POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:",
    "font-src 'self'", "connect-src 'self'", "worker-src 'self' blob:", "base-uri 'none'", "form-action 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Protection:
    """Adds the headers to every answer; refuses changes that do not come from our page or from the command line."""

    def __init__(self, app: ASGIApp, token: str | None):
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        reason = self.refusal(scope)
        if reason:
            await JSONResponse({"error": reason}, status_code=403)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        site = headers.get("sec-fetch-site")
        if scope["method"] in SAFE_METHODS:
            # A link from elsewhere may open the page, but no other site may load what it is made of.
            cross = site in ("cross-site", "same-site") and scope["path"].startswith("/api/")
            return "requests of other sites are refused" if cross else None
        if site not in (None, "same-origin"):
            return "changes are taken from the explorer's own page only"
        if self.token is None:
            return "this server was started without a token: nothing can be changed through it"
        cookie = SimpleCookie()
        try:
            cookie.load(headers.get("cookie", ""))
        except CookieError:
            cookie = SimpleCookie()
        offered = headers.get(TOKEN_HEADER) or (cookie[TOKEN_COOKIE].value if TOKEN_COOKIE in cookie else "")
        if not secrets.compare_digest(offered.encode(), self.token.encode()):
            return "changes need the token: open the address that `neuron-explorer view` printed"
        return None
