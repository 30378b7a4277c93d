"""Four services over one PostgreSQL server, and likes at all of them while connections are ended and it is restarted.

    python3 -m unittest --quiet test_storm

needs PostgreSQL, what the server of the timelines needs, and a service that is built with PostgreSQL. In the
environment, `SERVICE` is the path of the built service, and `MOMENTS_ROUNDS` the number of likes. Without PostgreSQL the test is
skipped.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import queue
import random
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import programs

CLUSTER = str(programs.SUPPORT / "postgresql" / "cluster")
LIKES = programs.rounds(200, full=10_000)
USERS = 100
SERVICES = 4
CALLERS = 16
OBSERVED_USERS = 3


def seed(moment_count: int) -> dict:
    """The data of a server: the timelines of all users, with moments without likes."""
    template = json.loads((programs.SUPPORT / "bff" / "data.json").read_text())
    user, moment = template["users"][0], template["timelines"]["0"][0]
    return {
        "users": [{**user, "id": str(number)} for number in range(USERS)],
        "timelines": {
            str(number): [{**moment, "id": str(index), "likes": []} for index in range(moment_count)]
            for number in range(USERS)
        },
    }


class Observer(threading.Thread):
    """Observes the events of a timeline, and records each event that lacks a like of an earlier one."""

    def __init__(self, service: programs.Program, user: str) -> None:
        super().__init__(daemon=True)
        self._service = service
        self.user = user
        self.liked: set[str] = set()
        self.count = 0
        self.faults: list[str] = []
        self.has_ended = False
        self.start()

    def run(self) -> None:
        while not self.has_ended:
            connection = self._service.connection()
            try:
                connection.request("GET", f"/timelines/{self.user}/events")
                for line in connection.getresponse():
                    if self.has_ended:
                        break
                    if line.startswith(b"data: "):
                        self._take(json.loads(line[6:]))
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
            finally:
                connection.close()

    def _take(self, event: dict) -> None:
        liked = {moment["id"] for moment in event["timeline"]["moments"] if moment["isLiked"]}
        if missing := self.liked - liked:
            self.faults.append(f"event {self.count} of user {self.user} lacks {sorted(missing)}")
        self.liked |= liked
        self.count += 1


class Caller(threading.Thread):
    """Makes likes, each repeatedly until a service accepts it, and counts the attempts."""

    def __init__(self, work: queue.SimpleQueue, services: list[programs.Program]) -> None:
        super().__init__(daemon=True)
        self._work, self._services = work, services
        self.attempts: dict[tuple[str, str], int] = {}
        self.problems: dict[str, int] = {}
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        connections = [service.connection() for service in self._services]
        try:
            while True:
                self._like(*self._work.get_nowait(), random.choice(connections))
        except queue.Empty:
            pass
        except BaseException as error:  # The test reports it.
            self.error = error
        finally:
            for connection in connections:
                connection.close()

    def _like(self, user: str, moment: str, connection: http.client.HTTPConnection) -> None:
        for attempt in range(1, 1_000):
            self.attempts[user, moment] = attempt
            connection.request(
                "POST", f"/timelines/{user}/moments/{moment}/like", body='{"isLiked": true}',
                headers={"Idempotency-Key": f"{user}-{moment}"})
            response = connection.getresponse()
            body = response.read()
            if response.status in (200, 202):
                return
            problem = f"{response.status} {json.loads(body)['detail']}"
            self.problems[problem] = self.problems.get(problem, 0) + 1
            time.sleep(0.05)
        raise AssertionError(f"the like of {moment} by {user} was never accepted: {self.problems}")


class Disturber(threading.Thread):
    """Ends connections to the server at random, and restarts it twice while the likes are made."""

    def __init__(self, folder: str, remaining) -> None:
        super().__init__(daemon=True)
        self._folder, self._remaining = folder, remaining
        self._has_ended = threading.Event()
        self.restarts = 0
        self.kills = 0
        self.start()

    def run(self) -> None:
        while not self._has_ended.wait(random.uniform(0.1, 0.5)):
            if self.restarts < 2 and self._remaining() < LIKES * (2 - self.restarts) // 3:
                command = "kill" if self.restarts else "stop"
                subprocess.run([CLUSTER, command, self._folder], check=True, capture_output=True)
                time.sleep(1)
                subprocess.run([CLUSTER, "start", self._folder], check=True, capture_output=True)
                self.restarts += 1
            else:
                ended = subprocess.run(
                    ["psql", "--host", self._folder, "--username", "postgres", "--tuples-only", "--command",
                     "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                     " WHERE application_name = 'DataStore' AND random() < 0.3"],
                    check=True, capture_output=True, text=True).stdout
                self.kills += int(ended)

    def end(self) -> None:
        self._has_ended.set()
        self.join()


@unittest.skipIf(shutil.which("psql") is None, "There is no PostgreSQL.")
class StormTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = pathlib.Path(tempfile.mkdtemp())
        folder.chmod(0o711)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.cluster = str(folder / "cluster")
        subprocess.run([CLUSTER, "start", self.cluster], check=True, capture_output=True)
        self.addCleanup(subprocess.run, [CLUSTER, "stop", self.cluster], check=True, capture_output=True)
        data = folder / "data.json"
        data.write_text(json.dumps(seed(-(-LIKES // USERS))))
        self.server = programs.server(programs.free_port(), folder / "state", data=data)
        store = f"postgresql://postgres@/postgres?host={self.cluster}"
        self.services = [
            programs.service(programs.free_port(), store, f"{self.server.address}/graphql") for _ in range(SERVICES)]
        for program in [self.server, *self.services]:
            self.addCleanup(program.stop)
            program.start()

    def waiting(self) -> int:
        return json.loads(self.services[0].get("/health"))["waitingLikes"]

    def test_each_like_is_made_at_most_once_for_each_attempt_and_every_observer_sees_it(self) -> None:
        likes = [(str(number % USERS), str(number // USERS)) for number in range(LIKES)]
        random.shuffle(likes)
        observers = [Observer(service, str(user)) for service in self.services for user in range(OBSERVED_USERS)]
        work: queue.SimpleQueue = queue.SimpleQueue()
        for like in likes:
            work.put(like)
        start = time.monotonic()
        callers = [Caller(work, self.services) for _ in range(CALLERS)]
        disturber = Disturber(self.cluster, work.qsize)
        for caller in callers:
            caller.join()
        took = time.monotonic() - start
        disturber.end()
        for caller in callers:
            self.assertIsNone(caller.error)
        self.assertEqual(disturber.restarts, 2)
        programs.wait_until(lambda: self.waiting() == 0, "the server has all likes")

        made = programs.likes(self.server)
        self.assertEqual(len({like["idempotencyKey"] for like in made}), len(made))
        counts: dict[tuple[str, str], int] = {}
        for like in made:
            key = (like["variables"]["userID"], like["variables"]["momentID"])
            counts[key] = counts.get(key, 0) + 1
        self.assertEqual(set(counts), set(likes))
        attempts = {like: count for caller in callers for like, count in caller.attempts.items()}
        # A like that was repeated after an error may have been stored by each attempt.
        self.assertEqual([like for like, count in counts.items() if count > attempts[like]], [])

        for service in self.services:
            for user in range(USERS):
                timeline = json.loads(service.get(f"/timelines/{user}"))
                self.assertTrue(all(moment["isLiked"] for moment in timeline["moments"]))
        for observer in observers:
            expected = {moment for user, moment in likes if user == observer.user}
            programs.wait_until(lambda: observer.liked == expected, f"an observer of user {observer.user} sees all likes")
            self.assertEqual(observer.faults, [])
            observer.has_ended = True
        problems: dict[str, int] = {}
        for caller in callers:
            for problem, count in caller.problems.items():
                problems[problem] = problems.get(problem, 0) + count
        print(f"{LIKES} likes in {took:.0f} s, {disturber.kills} connections ended, {problems}")


if __name__ == "__main__":
    unittest.main()
