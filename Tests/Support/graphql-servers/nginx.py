"""nginx in front of the servers."""

from __future__ import annotations

import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CONFIGURATION = """
daemon off;
# One process, which ends with its parent.
master_process off;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  scgi_temp_path {folder}/scgi;
  uwsgi_temp_path {folder}/uwsgi;
  gzip on;
  gzip_types application/json;
  gzip_min_length 1;
  server {{
    listen 127.0.0.1:{port} reuseport;
    location / {{
      proxy_pass http://127.0.0.1:{target};
    }}
    # Responses have the field twice.
    location /repeated/ {{
      add_header Content-Type application/json always;
      proxy_pass http://127.0.0.1:{target}/;
    }}
    # Requests are too large.
    location /small/ {{
      client_max_body_size 64;
      proxy_pass http://127.0.0.1:{target}/;
    }}
    # No server listens at this port.
    location /unavailable/ {{
      proxy_pass http://127.0.0.1:{unused}/;
    }}
  }}
}}
"""


class Missing(Exception):
    """nginx isn't installed."""


@contextmanager
def nginx(target: int) -> Iterator[str]:
    """Runs nginx in front of a port, and yields its URL once it accepts connections."""
    # Debian installs it where a user's path doesn't lead.
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise Missing
    # The sockets are bound but don't listen. They keep other processes from taking the ports.
    with TemporaryDirectory() as folder, _reserved_port() as port, _reserved_port() as unused:
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=port, target=target, unused=unused))
        process = subprocess.Popen(
            [program, "-p", folder, "-c", str(configuration)], stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent
        )
        try:
            _wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _reserved_port() -> Iterator[int]:
    with socket.socket() as reserving:
        reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserving.bind(("127.0.0.1", 0))
        yield reserving.getsockname()[1]


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise OSError(f"nginx ended with the status {process.returncode}")


def _end_with_parent() -> None:
    """Makes Linux end this process when its parent ends, even if the parent is killed."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
