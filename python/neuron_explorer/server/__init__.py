# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The server behind the browser app (`neuron-explorer view`)."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import sys
import threading
import webbrowser

DEFAULT_PORT = 3001


class ServerError(ValueError):
    """A server that cannot start; the text says why and what to do."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(data_path=None, port: int = DEFAULT_PORT, host: str = "127.0.0.1", profile: str | None = None,
          open_browser: bool = False, verbose: bool = False, allow_remote: bool = False) -> None:  # fmt: skip
    """Serves the data folder until it is interrupted; port 0 takes a free one.

    Only loopback is listened on unless `allow_remote` is given with another address: there is no encryption and no
    account, and whoever reaches the port can read every profile.
    """
    import uvicorn

    from .app import create_app

    if not is_loopback(host):
        if not allow_remote:
            raise ServerError(f"expected a loopback address but got {host}: pass allow_remote to listen elsewhere")
        print(f"warning: {host}:{port} can be read by everyone who reaches it", file=sys.stderr)
    if host == "::1":
        raise ServerError("expected 127.0.0.1 but got ::1: the check of host names does not know IPv6 addresses")
    token = secrets.token_urlsafe(24)
    hosts = ["127.0.0.1", "localhost"] if is_loopback(host) else ["127.0.0.1", "localhost", host]
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Before the address is printed: whoever opens it at once waits instead of being refused.
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ServerError(
            f"port {port} on {host} cannot be used ({error.strerror}): choose another with --port"
        ) from error
    port = listening.getsockname()[1]
    address = f"http://{host}:{port}/?token={token}" + (f"#/p/{profile}" if profile else "")
    print(f"Neuron Explorer is at {address}", flush=True)
    if open_browser:
        webbrowser.open(address)
    application = create_app(data_path, token, hosts)
    if profile:
        threading.Thread(target=_warm, args=(application, profile), daemon=True).start()
    config = uvicorn.Config(application, log_level="info" if verbose else "warning",
                            access_log=verbose, server_header=False)  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def _warm(application, profile: str) -> None:
    try:
        application.state.explorer.warm(profile)
    except (ValueError, OSError) as error:
        # The page asks for the same and shows what is wrong.
        print(f"warning: profile {profile} cannot be drawn: {error}", file=sys.stderr)
