"""Two services and a PostgreSQL server on machines of their own, and a network between them that is cut.

    python3 -m unittest --quiet test_machines

The machines are network namespaces, so the test needs the rights to create them. It also needs `ip`, `curl`,
PostgreSQL, and a service that is built with PostgreSQL. `SERVICE` in the environment is the path of the built service.
Without namespaces the test is skipped, unless `MOMENTS_REQUIRE_NETWORK_NAMESPACES` is 1.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import programs

IS_REQUIRED = os.environ.get("MOMENTS_REQUIRE_NETWORK_NAMESPACES") == "1"

PREFIX = f"m{os.getpid()}"
HUB, FIRST, SECOND, DATABASE = (f"{PREFIX}{name}" for name in ("hub", "a", "b", "db"))
NETWORK = "10.213.7."
ADDRESSES = {FIRST: NETWORK + "2", SECOND: NETWORK + "3", DATABASE: NETWORK + "4"}

PARTITION = 30.0 if programs.ROUNDS == "full" else 10.0
"""The number of seconds for which a service is cut off."""


def run(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def has_namespaces() -> bool:
    try:
        run("ip", "netns", "add", f"{PREFIX}probe")
        run("ip", "netns", "delete", f"{PREFIX}probe")
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


class Machines:
    """Three machines that are connected by a switch, which is a namespace too."""

    def __init__(self) -> None:
        run("ip", "netns", "add", HUB)
        run("ip", "-n", HUB, "link", "add", "switch", "type", "bridge")
        run("ip", "-n", HUB, "link", "set", "switch", "up")
        for machine, address in ADDRESSES.items():
            run("ip", "netns", "add", machine)
            run("ip", "-n", HUB, "link", "add", machine, "type", "veth", "peer", "name", "eth", "netns", machine)
            run("ip", "-n", machine, "address", "add", f"{address}/24", "dev", "eth")
            for link in ("lo", "eth"):
                run("ip", "-n", machine, "link", "set", link, "up")
            run("ip", "-n", HUB, "link", "set", machine, "up")
            self.connect(machine)

    def connect(self, machine: str) -> None:
        run("ip", "-n", HUB, "link", "set", machine, "master", "switch")

    def cut(self, machine: str) -> None:
        """Disconnects a machine at the switch: its packets are lost, and it isn't notified."""
        run("ip", "-n", HUB, "link", "set", machine, "nomaster")

    def end(self) -> None:
        for machine in [*ADDRESSES, HUB]:
            subprocess.run(["ip", "netns", "delete", machine], check=False, capture_output=True)


class Events(threading.Thread):
    """The event stream that a service sends to a browser on its machine.

    An event may already show a like that only a later event has in the waiting list.
    """

    def __init__(self, service: programs.Program, machine: str) -> None:
        super().__init__(daemon=True)
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", machine, "curl", "--silent", "--no-buffer", service.address + "/timelines/0/events"],
            stdout=subprocess.PIPE, text=True,
        )
        self.newest: dict = {}
        self.start()

    def run(self) -> None:
        for line in self._process.stdout:
            if line.startswith("data: "):
                self.newest = json.loads(line[6:])

    def is_liked(self, moment: int) -> bool | None:
        moments = self.newest.get("timeline", {}).get("moments", [])
        return next((m["isLiked"] for m in moments if m["id"] == str(moment)), None)

    @property
    def waiting(self) -> list[str] | None:
        return self.newest.get("waiting")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.join()
        self._process.stdout.close()


@unittest.skipIf(not IS_REQUIRED and not has_namespaces(), "No network namespaces can be made.")
class MachinesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.folder.chmod(0o711)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.machines = Machines()
        self.addCleanup(self.machines.end)
        self.start_database()
        self.server = programs.server(8081, self.folder / "state", machine=DATABASE)
        self.addCleanup(self.server.stop)
        self.server.start()
        forward = subprocess.Popen(
            ["ip", "netns", "exec", DATABASE, sys.executable, str(pathlib.Path(__file__).with_name("forward.py")),
             ADDRESSES[DATABASE], "8080", "8081"])
        self.addCleanup(forward.wait)
        self.addCleanup(forward.kill)
        store = f"postgresql://postgres@{ADDRESSES[DATABASE]}/postgres"
        upstream = f"http://{ADDRESSES[DATABASE]}:8080/graphql"
        self.services = {}
        self.events = {}
        for machine in (FIRST, SECOND):
            service = programs.service(8080, store, upstream, machine=machine)
            self.addCleanup(service.stop)
            service.start()
            self.services[machine] = service
            self.events[machine] = Events(service, machine)
            self.addCleanup(self.events[machine].end)
        for events in self.events.values():
            programs.wait_until(lambda: events.is_liked(1) is False, "both services show the timeline")

    def start_database(self) -> None:
        cluster = str(programs.SUPPORT / "postgresql" / "cluster")
        folder = str(self.folder / "cluster")
        run("ip", "netns", "exec", DATABASE, cluster, "start", folder, ADDRESSES[DATABASE])
        self.addCleanup(run, cluster, "stop", folder)

    def like(self, machine: str, moment: int) -> tuple[int, bytes]:
        return self.services[machine].request(
            "POST", f"/timelines/0/moments/{moment}/like", {"isLiked": True}, Idempotency_Key=f"{machine}-{moment}")

    def test_a_service_that_is_cut_off_catches_up(self) -> None:
        cut, other = FIRST, SECOND
        self.assertEqual(self.like(other, 1)[0], 200)
        # The service that has sent a like last may hold the lock of the queue when it is cut off.
        self.assertEqual(self.like(cut, 3)[0], 200)
        self.machines.cut(cut)
        end = time.monotonic() + PARTITION

        answers: dict[int, tuple[int, bytes]] = {}
        callers = [threading.Thread(target=lambda: answers.update({7: self.like(cut, 7)}))]
        callers[0].start()
        # The like shows at once where it was made, and waits.
        programs.wait_until(
            lambda: self.events[cut].is_liked(7) and self.events[cut].waiting == ["7"],
            "the like shows and waits where it was made", 1)
        self.assertFalse(self.events[other].is_liked(7))
        # The other service continues, at the latest when PostgreSQL has given up the cut service's connection.
        self.assertEqual(self.like(other, 5)[0] // 100, 2)
        programs.wait_until(lambda: 5 in self.sent_likes(), "the other service sends the like", PARTITION)
        programs.wait_until(
            lambda: self.events[other].is_liked(5) and self.events[other].waiting == [], "the like waits no longer")
        while time.monotonic() < end:
            for moment in (8, 9):
                status, _ = self.like(other, moment)
                self.assertEqual(status // 100, 2)
            time.sleep(0.5)
        self.assertFalse(self.events[cut].is_liked(5))

        self.machines.connect(cut)
        callers[0].join(programs.LONGEST_WAIT)
        self.assertEqual(answers[7][0] // 100, 2, answers)
        moments = [1, 3, 5, 7, 8, 9]
        programs.wait_until(lambda: set(moments) <= set(self.sent_likes()), "all likes are sent")
        for machine in (cut, other):
            events = self.events[machine]
            programs.wait_until(
                lambda: all(events.is_liked(moment) for moment in moments) and events.waiting == [],
                "both services show all likes, and nothing waits")
        programs.wait_until(
            lambda: self.events[cut].newest == self.events[other].newest, "both services show the same")

        self.assertEqual(sorted(self.sent_likes()), moments)
        likes = programs.likes(self.server)
        self.assertEqual(len({like["idempotencyKey"] for like in likes}), len(likes))

    def sent_likes(self) -> list[int]:
        """The moments whose likes the server has made, in order."""
        return [int(like["variables"]["momentID"]) for like in programs.likes(self.server)]


if __name__ == "__main__":
    unittest.main()
