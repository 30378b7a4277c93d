"""A GraphQL server for moments that can inject faults: run `python3 server.py`, and POST to the URL that it prints."""

from __future__ import annotations

import argparse
import ipaddress
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from journal import InvalidState, Journal
from media import MediaType
from timeline import InvalidSeed, load_seed

STANDARD_INPUT = 0

FOLDER = Path(__file__).parent

SCHEMAS = {"lecture": FOLDER / "schema-lecture.graphql", "paging": FOLDER / "schema.graphql"}

MEDIA_TYPES = {"json": MediaType.JSON, "graphql-response": MediaType.GRAPHQL_RESPONSE}

EXIT_DATA = 65
EXIT_NO_INPUT = 66
EXIT_UNAVAILABLE = 69
EXIT_CANNOT_CREATE = 73


def loopback(text: str) -> str:
    """Parses an IPv4 loopback address; others are rejected, because the server has no access control."""
    host = "127.0.0.1" if text == "localhost" else text
    try:
        is_loopback = ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IPv4 loopback address")
    return host


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def options(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A GraphQL server for moments that can inject faults.")
    parser.add_argument("--port", type=port, default=0, help="the port; the default, 0, chooses a free one")
    parser.add_argument("--host", type=loopback, default="127.0.0.1", help="an IPv4 loopback address")
    parser.add_argument("--data", type=Path, default=FOLDER / "data.json", metavar="FILE")
    parser.add_argument("--schema", choices=SCHEMAS, default="paging", help="the default, paging, is the larger one")
    parser.add_argument("--media-type", choices=MEDIA_TYPES, default="json", help="for clients that accept it")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep likes, keys and requests across restarts")
    parser.add_argument("--parent", type=int, default=os.getppid(), metavar="PID", help="end when this process ends")
    parser.add_argument("--detached", action="store_true", help="keep running when standard input is closed")
    parser.add_argument("--verbose", action="store_true", help="log requests to standard error")
    return parser.parse_args(arguments)


def catch_signals() -> tuple[socket.socket, socket.socket]:
    """Turns SIGTERM and SIGINT into bytes that can be read from the first socket; both sockets must stay open.

    Signal handlers alone aren't sufficient. A handler could run just before the wait begins, and the wait would never
    end.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # The signals may be blocked, because a process inherits the signal mask of the thread that starts it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    return reading, writing


def end_of(process: int) -> Optional[int]:
    """Returns a descriptor that becomes readable when the process ends; None if the system doesn't support that.

    Raises `ProcessLookupError` if the process has already ended.
    """
    try:
        return os.pidfd_open(process)  # type: ignore[attr-defined,no-any-return,unused-ignore]
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        return None


def wait_for_end(signals: socket.socket, parent: Optional[int], is_detached: bool) -> None:
    """Waits for a signal or, unless detached, until standard input is closed or the parent ends for any reason.

    Waiting for the input isn't sufficient, because another child of the parent may have inherited the other end of the
    pipe.
    """
    ends = [signals.fileno()]
    if not is_detached and parent is not None:
        ends.append(parent)
    sources = ends if is_detached else [*ends, STANDARD_INPUT]
    while True:
        readable, _, _ = select.select(sources, [], [])
        if not set(readable).isdisjoint(ends) or not os.read(STANDARD_INPUT, 4096):
            return


def failure(message: str, code: int) -> int:
    print(f"server.py: {message}", file=sys.stderr)
    return code


def main() -> int:
    chosen = options()
    try:
        parent = end_of(chosen.parent)
    except ProcessLookupError:
        return 0
    try:
        seed = load_seed(chosen.data)
    except OSError as error:
        return failure(f"cannot read {chosen.data}: {error.strerror}", EXIT_NO_INPUT)
    except InvalidSeed as error:
        return failure(f"{chosen.data} is not a data file: {error}", EXIT_DATA)
    try:
        journal = Journal(chosen.state)
    except OSError as error:
        return failure(f"cannot open {chosen.state}: {error.strerror}", EXIT_CANNOT_CREATE)
    except InvalidState as error:
        return failure(f"{chosen.state} is not a usable state file: {error}", EXIT_DATA)
    try:
        from api import load_schema
        from handler import Server
    except ModuleNotFoundError as error:
        if error.name != "graphql":
            raise
        return failure("graphql-core is missing; run: pip install -r requirements.txt", EXIT_UNAVAILABLE)
    schema = load_schema(SCHEMAS[chosen.schema])
    try:
        server = Server(
            (chosen.host, chosen.port), schema, seed, journal, MEDIA_TYPES[chosen.media_type], chosen.verbose
        )
        server.open()
    except OSError as error:
        return failure(f"cannot listen on {chosen.host}:{chosen.port}: {error.strerror}", EXIT_UNAVAILABLE)
    signals, _writing = catch_signals()
    print(f"listening on http://{chosen.host}:{server.address[1]}/graphql", flush=True)
    wait_for_end(signals, parent, chosen.detached)
    return 0


if __name__ == "__main__":
    sys.exit(main())
