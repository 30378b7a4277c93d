"""Ariadne and Strawberry behind uvicorn, and nginx in front of them: run `python3 server.py`."""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Optional

STANDARD_INPUT = 0

EXIT_UNAVAILABLE = 69


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="GraphQL servers of others, for the tests.")
    parser.add_argument("--port", type=int, default=0, help="the port; the default, 0, chooses a free one")
    parser.add_argument("--parent", type=int, default=os.getppid(), metavar="PID", help="end when this process ends")
    parser.add_argument("--verbose", action="store_true", help="log exceptions to standard error")
    return parser.parse_args()


def wait_for_end(parent: int) -> None:
    """Waits until standard input is closed or, if the system can report that, the parent ends."""
    sources = [STANDARD_INPUT]
    try:
        sources.append(os.pidfd_open(parent))  # type: ignore[attr-defined,unused-ignore]
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        pass
    while True:
        readable, _, _ = select.select(sources, [], [])
        if readable != [STANDARD_INPUT] or not os.read(STANDARD_INPUT, 4096):
            return


def serve(port: int, parent: int) -> None:
    import uvicorn

    import ariadne_app
    import strawberry_app
    from control import control
    from nginx import nginx

    apps: dict[str, Any] = {"/ariadne": ariadne_app.app, "/strawberry": strawberry_app.app}

    async def route(
        scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        await apps[scope["path"]](scope, receive, send)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Optional[list[socket.socket]] = None) -> None:
            await super().startup(sockets=sockets)
            print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}/control", flush=True)
            threading.Thread(target=self._end_with_parent, daemon=True).start()

        def _end_with_parent(self) -> None:
            wait_for_end(parent)
            self.should_exit = True

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        with nginx(target=listening.getsockname()[1]) as proxy:
            apps["/control"] = control(proxy)
            # By default, the server closes a connection that was idle for 5 seconds. On a busy machine, a test would
            # then send its next request on a connection that is being closed, and have one attempt more.
            configuration = uvicorn.Config(
                route, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=1_000
            )
            Server(configuration).run(sockets=[listening])


def main() -> int:
    chosen = options()
    # The servers log each exception that a test provokes, and nobody reads the pipe.
    if not chosen.verbose:
        logging.disable(logging.CRITICAL)
    # The signals may be blocked, because a process inherits the signal mask of the thread that starts it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    from nginx import Missing

    try:
        serve(chosen.port, chosen.parent)
    except ModuleNotFoundError as error:
        print(f"server.py: {error.name} is missing; run: pip install -r requirements.txt", file=sys.stderr)
        return EXIT_UNAVAILABLE
    except Missing:
        print("server.py: nginx is missing; install it, on Debian with: apt-get install nginx-light", file=sys.stderr)
        return EXIT_UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
