"""A GraphQL server for moments with faults to order: `python3 server.py`, then POST to the address it prints."""

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
    """An address of this machine only: the server does what anyone asks of it."""
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
    parser = argparse.ArgumentParser(description="A GraphQL server for moments, with faults to order.")
    parser.add_argument("--port", type=port, default=0, help="0, the default, takes a free one")
    parser.add_argument("--host", type=loopback, default="127.0.0.1", help="a loopback address")
    parser.add_argument("--data", type=Path, default=FOLDER / "data.json", metavar="FILE")
    parser.add_argument("--schema", choices=SCHEMAS, default="paging", help="paging, the default, is the larger one")
    parser.add_argument("--media-type", choices=MEDIA_TYPES, default="json", help="of replies to those who ask for it")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep likes, keys and requests across restarts")
    parser.add_argument("--parent", type=int, default=os.getppid(), metavar="PID", help="end with that process")
    parser.add_argument("--detached", action="store_true", help="keep running at the end of standard input")
    parser.add_argument("--verbose", action="store_true", help="log requests to standard error")
    return parser.parse_args(arguments)


def catch_signals() -> tuple[socket.socket, socket.socket]:
    """Turns SIGTERM and SIGINT into bytes, readable from the first socket; keep both.

    A handler alone could run just before the wait for it, and the wait would never end.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # A parent may start processes from a thread that blocks signals, and they inherit that.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    return reading, writing


def end_of(process: int) -> Optional[int]:
    """A descriptor that is readable once the process has ended; None where the system has none.

    Raises `ProcessLookupError` if it has ended already.
    """
    try:
        return os.pidfd_open(process)  # type: ignore[attr-defined,no-any-return,unused-ignore]
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        return None


def wait_for_end(signals: socket.socket, parent: Optional[int], is_detached: bool) -> None:
    """Waits for a signal or, unless detached, for the end of standard input or of the parent, however it died.

    The end of the input alone does not tell: another child of the parent may have inherited the pipe's other end.
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
        return failure(f"{chosen.state} is not a state file to use: {error}", EXIT_DATA)
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
