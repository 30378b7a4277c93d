"""Tests of a mounted volume: its files, its commands, its end, and stores that survive a loss of power on it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Optional

SCRIPT = Path(__file__).parent / "power_loss.py"
# In seconds.
TIMEOUT = 30
SEEDS = range(8)


def setUpModule() -> None:
    check = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    if check.returncode != 0:
        if os.environ.get("MOMENTS_REQUIRE_POWER_LOSS") == "1":
            raise AssertionError(check.stderr)
        raise unittest.SkipTest(check.stderr.strip())


class MountedVolume:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(SCRIPT), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"not mounted: {line!r} {self.process.communicate()}")

    def send(self, command: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def count(self) -> int:
        return int(self.send("count"))

    def end(self, how: Optional[signal.Signals] = None) -> tuple[str, str]:
        """Ends the process with a signal, or with its standard input."""
        if how:
            self.process.send_signal(how)
        return self.process.communicate(timeout=TIMEOUT)


class VolumeTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "volume"
        self.folder.mkdir()
        self.volume = MountedVolume(self.folder)
        self.addCleanup(self.end)

    def end(self) -> None:
        if self.volume.process.returncode is None:
            self.volume.end()
        self.assertFalse(os.path.ismount(self.folder))

    def command(self, command: str) -> None:
        self.assertEqual(self.volume.send(command), "ok")

    def assert_fails(self, code: int, function: Callable[..., Any], *arguments: Any) -> None:
        with self.assertRaises(OSError) as context:
            function(*arguments)
        self.assertEqual(context.exception.errno, code)

    @contextmanager
    def opened(self, path: Path, flags: int) -> Iterator[int]:
        descriptor = os.open(path, flags, 0o600)
        try:
            yield descriptor
        finally:
            # A handle from before a restore is closed even if the call fails.
            try:
                os.close(descriptor)
            except OSError:
                pass


def synchronize_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes, synchronizes: bool = True) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, content)
        if synchronizes:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileSystemTests(VolumeTestCase):
    def test_files_and_folders_are_read_as_they_were_written(self) -> None:
        folder = self.folder / "folder"
        folder.mkdir(0o700)
        write(folder / "file", b"content")
        os.link(folder / "file", self.folder / "link")
        os.rename(folder / "file", self.folder / "moved")
        os.truncate(self.folder / "moved", 4)
        with open(self.folder / "link", "ab") as file:
            file.write(b"!")
        self.assertEqual((self.folder / "moved").read_bytes(), b"cont!")
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "link", "moved"])
        status = os.stat(self.folder / "link")
        self.assertEqual((status.st_nlink, status.st_size, status.st_mode), (2, 5, 0o100600))
        os.unlink(self.folder / "moved")
        os.rmdir(folder)
        self.assertEqual(os.listdir(self.folder), ["link"])
        os.utime(self.folder / "link", ns=(1, 2))
        os.chmod(self.folder / "link", 0o640)
        status = os.stat(self.folder / "link")
        self.assertEqual((status.st_atime_ns, status.st_mtime_ns, status.st_mode), (1, 2, 0o100640))

    def test_a_thousand_names_and_five_megabytes_are_read_as_they_were_written(self) -> None:
        names = {f"{index:04}-{'n' * 100}" for index in range(1000)}
        for name in names:
            (self.folder / name).touch()
        self.assertEqual(set(os.listdir(self.folder)), names)
        content = os.urandom(5_000_001)
        write(self.folder / "large", content)
        self.assertEqual((self.folder / "large").read_bytes(), content)

    def test_a_replaced_file_can_be_used_while_it_is_open(self) -> None:
        write(self.folder / "file", b"old")
        with self.opened(self.folder / "file", os.O_RDWR) as descriptor:
            write(self.folder / "new", b"newer")
            os.rename(self.folder / "new", self.folder / "file")
            self.assertEqual(os.listdir(self.folder), ["file"])
            self.assertEqual((os.fstat(descriptor).st_size, os.fstat(descriptor).st_nlink), (3, 0))
            os.ftruncate(descriptor, 2)
            self.assertEqual(os.pread(descriptor, 10, 0), b"ol")
        self.assertEqual((self.folder / "file").read_bytes(), b"newer")

    def test_calls_that_cannot_succeed_fail_with_the_usual_codes(self) -> None:
        write(self.folder / "file", b"")
        (self.folder / "folder").mkdir()
        (self.folder / "folder" / "inner").mkdir()
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        self.assert_fails(errno.EEXIST, os.open, self.folder / "file", flags)
        self.assert_fails(errno.ENOENT, os.open, self.folder / "none", os.O_RDONLY)
        self.assert_fails(errno.ENOTEMPTY, os.rmdir, self.folder / "folder")
        self.assert_fails(errno.EINVAL, os.rename, self.folder / "folder", self.folder / "folder" / "inner" / "x")
        self.assert_fails(errno.EPERM, os.symlink, "file", self.folder / "symbolic")
        self.assert_fails(errno.ENAMETOOLONG, os.mkdir, self.folder / ("n" * 256))

    def test_locks_exclude_each_other(self) -> None:
        path = self.folder / "lock"
        for lock in (fcntl.flock, fcntl.lockf):
            with self.opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
                lock(descriptor, fcntl.LOCK_EX)
                code = f"import fcntl; fcntl.{lock.__name__}(open({str(path)!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
                process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
                self.assertIn("BlockingIOError", process.stderr)
            self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_processes_share_mapped_memory(self) -> None:
        path = self.folder / "mapped"
        write(path, bytes(4096))
        code = f"import mmap; file = open({str(path)!r}, 'r+b'); mmap.mmap(file.fileno(), 4096)[:5] = b'there'"
        with self.opened(path, os.O_RDWR) as descriptor, mmap.mmap(descriptor, 4096) as memory:
            memory[10:14] = b"here"
            subprocess.run([sys.executable, "-c", code], check=True)
            self.assertEqual(memory[:14], b"there\0\0\0\0\0here")

    def test_changes_are_notified(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        moved_to, closed_after_write = 0x80, 0x8
        descriptor = library.inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, descriptor)
        self.assertGreater(
            library.inotify_add_watch(descriptor, os.fsencode(self.folder), moved_to | closed_after_write), 0
        )
        write(self.folder / "new", b"content")
        os.rename(self.folder / "new", self.folder / "file")
        self.assertTrue(select.select([descriptor], [], [], TIMEOUT)[0])
        data = os.read(descriptor, 4096)
        events = []
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            events.append((mask, data[16 : 16 + length].rstrip(b"\0")))
            data = data[16 + length :]
        self.assertEqual(events, [(closed_after_write, b"new"), (moved_to, b"file")])

    def test_small_operations_are_fast(self) -> None:
        with self.opened(self.folder / "file", os.O_WRONLY | os.O_CREAT) as descriptor:
            start = time.monotonic()
            for index in range(6000):
                os.pwrite(descriptor, b"x", index)
            elapsed = time.monotonic() - start
        # A tenth of the usual speed, because the machine may be busy.
        self.assertLess(elapsed, 6)


class PowerTests(VolumeTestCase):
    def test_unsynchronized_changes_are_forgotten(self) -> None:
        write(self.folder / "kept", b"content")
        write(self.folder / "empty", b"content", synchronizes=False)
        synchronize_folder(self.folder)
        write(self.folder / "lost", b"content")
        self.command("cut")
        self.command("restore forget")
        self.assertEqual(sorted(os.listdir(self.folder)), ["empty", "kept"])
        self.assertEqual((self.folder / "kept").read_bytes(), b"content")
        self.assertEqual((self.folder / "empty").read_bytes(), b"")
        self.assertFalse((self.folder / "lost").exists())

    def test_fdatasync_makes_content_durable(self) -> None:
        with self.opened(self.folder / "file", os.O_WRONLY | os.O_CREAT) as descriptor:
            synchronize_folder(self.folder)
            os.write(descriptor, b"content")
            os.fdatasync(descriptor)
            self.command("restore forget")
        self.assertEqual((self.folder / "file").read_bytes(), b"content")

    def test_without_power_every_call_fails(self) -> None:
        path = self.folder / "file"
        write(path, b"content")
        with self.opened(path, os.O_RDWR) as descriptor, self.opened(self.folder, os.O_RDONLY) as directory:
            # Now the kernel has cached the content.
            self.assertEqual(os.pread(descriptor, 7, 0), b"content")
            self.command("cut")
            self.assertEqual(self.volume.send("is-cut"), "yes")
            self.assert_fails(errno.EIO, os.pread, descriptor, 7, 0)
            self.assert_fails(errno.EIO, os.pwrite, descriptor, b"x", 0)
            self.assert_fails(errno.EIO, os.fsync, descriptor)
            self.assert_fails(errno.EIO, os.fdatasync, descriptor)
            self.assert_fails(errno.EIO, os.fstat, descriptor)
            self.assert_fails(errno.EIO, os.fsync, directory)
            self.assert_fails(errno.EIO, os.listdir, directory)
            self.assert_fails(errno.EIO, os.stat, path)
            self.assert_fails(errno.EIO, os.unlink, path)
            self.assert_fails(errno.EIO, os.statvfs, path)
            self.assert_fails(errno.EIO, os.mkdir, self.folder / "folder")
            self.assert_fails(errno.EIO, os.rename, path, self.folder / "other")
            self.command("restore forget")
        self.assertEqual(self.volume.send("is-cut"), "no")
        self.assertEqual(os.listdir(self.folder), [])

    def test_handles_from_before_a_restore_are_dead(self) -> None:
        (self.folder / "folder").mkdir()
        path = self.folder / "folder" / "file"
        write(path, b"content")
        synchronize_folder(self.folder / "folder")
        synchronize_folder(self.folder)
        with self.opened(path, os.O_RDWR) as old, self.opened(self.folder / "folder", os.O_RDONLY) as old_folder:
            self.command("restore forget")
            self.assert_fails(errno.EIO, os.pread, old, 7, 0)
            self.assert_fails(errno.EIO, os.pwrite, old, b"x", 0)
            self.assert_fails(errno.EIO, os.fstat, old)
            self.assert_fails(errno.EIO, os.fsync, old)
            self.assert_fails(errno.EIO, os.listdir, old_folder)
            with self.assertRaises(OSError):
                os.open("file", os.O_RDONLY, dir_fd=old_folder)
            self.assertEqual(path.read_bytes(), b"content")

    def test_memory_mapped_before_a_restore_has_no_effect_after_it(self) -> None:
        path = self.folder / "mapped"
        write(path, b"durable!" + bytes(4088))
        synchronize_folder(self.folder)
        with self.opened(path, os.O_RDWR) as old, mmap.mmap(old, 4096) as old_memory:
            old_memory[:4] = b"lost"
            self.command("restore forget")
            with self.opened(path, os.O_RDWR) as new, mmap.mmap(new, 4096) as memory:
                self.assertEqual(memory[:8], b"durable!")
                old_memory[:4] = b"late"
                memory[:3] = b"new"
                self.assert_fails(errno.EIO, old_memory.flush)
                memory.flush()
                self.assertEqual(memory[:8], b"newable!")
                self.assertEqual(os.pread(new, 8, 0), b"newable!")
            old_memory[:4] = b"last"
        self.assertEqual(path.read_bytes()[:8], b"newable!")

    def test_mapped_memory_can_be_read_without_power_and_after_a_restore(self) -> None:
        write(self.folder / "mapped", b"content")
        synchronize_folder(self.folder)
        with self.opened(self.folder / "mapped", os.O_RDWR) as first:
            with self.opened(self.folder / "mapped", os.O_RDWR) as second:
                with mmap.mmap(first, 7) as first_memory, mmap.mmap(second, 7) as second_memory:
                    self.command("cut")
                    self.assertEqual(first_memory[:], b"content")
                    self.command("restore forget")
                    self.assertEqual(second_memory[:], b"content")
                    self.assert_fails(errno.EIO, os.pread, second, 7, 0)

    def test_nothing_is_cached_across_a_restore(self) -> None:
        path = self.folder / "file"
        write(path, b"old")
        synchronize_folder(self.folder)
        write(path, b"newer", synchronizes=False)
        (self.folder / "gone").touch()
        self.assertEqual((path.read_bytes(), path.stat().st_size), (b"newer", 5))
        self.command("restore forget")
        self.assertEqual((path.read_bytes(), path.stat().st_size), (b"old", 3))
        self.assertFalse((self.folder / "gone").exists())

    def test_a_seed_keeps_some_changes_and_always_the_same_ones(self) -> None:
        def names_after(seed: int) -> list[str]:
            for name in os.listdir(self.folder):
                os.unlink(self.folder / name)
            synchronize_folder(self.folder)
            for index in range(10):
                (self.folder / str(index)).touch()
            self.command(f"restore keep {seed}")
            return os.listdir(self.folder)

        first = [names_after(seed) for seed in SEEDS]
        self.assertEqual(first, [names_after(seed) for seed in SEEDS])
        self.assertGreater(len(set(map(tuple, first))), 3)

    def test_an_armed_cut_comes_after_the_given_number_of_operations(self) -> None:
        before = self.volume.count()
        self.command("arm 3")
        # Creates, writes, and synchronizes: the last of these three operations still returns success.
        with self.opened(self.folder / "file", os.O_WRONLY | os.O_CREAT) as descriptor:
            os.write(descriptor, b"content")
            os.fsync(descriptor)
            self.assert_fails(errno.EIO, os.write, descriptor, b"x")
        self.assertEqual(self.volume.count() - before, 3)
        self.command("restore forget")
        self.command("arm 1")
        self.command("disarm")
        write(self.folder / "file", b"content")

    def test_a_write_is_one_operation_up_to_a_mebibyte(self) -> None:
        with self.opened(self.folder / "file", os.O_WRONLY | os.O_CREAT) as descriptor:
            before = self.volume.count()
            # The bytes aren't zeros, because the system would provide the memory of zeros only during the write, and
            # split it.
            os.write(descriptor, b"x" * (1 << 20))
            self.assertEqual(self.volume.count() - before, 1)


def has_ended(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


class CommandTests(VolumeTestCase):
    def test_commands_that_cannot_be_executed_get_an_error(self) -> None:
        for command in ("cut now", "arm", "arm x", "arm -1", "restore", "restore keep", "restore keep x", ""):
            self.assertRegex(self.volume.send(command), "^error: ")
        self.assertEqual(self.volume.send("is-cut"), "no")

    def test_it_unmounts_at_every_kind_of_end_even_with_open_files(self) -> None:
        for how in (None, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.opened(self.folder / "file", os.O_WRONLY | os.O_CREAT):
                self.volume.end(how)
                deadline = time.monotonic() + TIMEOUT
                # A killed process cannot wait for the unmount itself.
                while how == signal.SIGKILL and time.monotonic() < deadline and self.is_mounted():
                    time.sleep(0.01)
                self.assertFalse(self.is_mounted())
                self.assertEqual(os.listdir(self.folder), [])
            self.volume = MountedVolume(self.folder)

    def is_mounted(self) -> bool:
        return f" {self.folder} " in Path("/proc/self/mounts").read_text()

    def test_quit_replies_once_it_is_unmounted(self) -> None:
        self.assertEqual(self.volume.send("quit"), "ok")
        self.assertFalse(os.path.ismount(self.folder))
        self.assertEqual(self.volume.end(), ("", ""))

    def test_it_ends_with_its_parent(self) -> None:
        folder = self.folder.parent / "other"
        folder.mkdir()
        # Another process keeps the pipe of the input open.
        code = "import subprocess, sys; process = subprocess.Popen(sys.argv[1:], stdin=0, stdout=subprocess.PIPE); "
        code += "process.stdout.readline(); print(process.pid)"
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        output = subprocess.check_output(
            [sys.executable, "-c", code, sys.executable, "-B", str(SCRIPT), str(folder)], stdin=reading
        )
        os.close(reading)
        deadline = time.monotonic() + TIMEOUT
        while not has_ended(int(output)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(has_ended(int(output)))
        self.assertFalse(os.path.ismount(folder))

    def test_a_missing_folder_is_refused(self) -> None:
        process = subprocess.run(
            [sys.executable, str(SCRIPT), str(self.folder / "none")], capture_output=True, text=True
        )
        self.assertEqual((process.returncode, process.stdout), (69, ""))
        self.assertIn("cannot mount", process.stderr)


class StoreTests(VolumeTestCase):
    """Tests of stores, with the power cut after each of their operations."""

    def results(self, change: Callable[[Path], None], prepare: Callable[[Path], None]) -> Iterator[tuple[Path, bool]]:
        """Yields a folder after each cut and restore, and whether the change had succeeded."""
        number = 0
        operations: Optional[int] = None
        cut_after = 0
        while operations is None or cut_after <= operations:
            for restore in ["restore forget", *(f"restore keep {seed}" for seed in SEEDS)]:
                folder = self.folder / str(number)
                number += 1
                folder.mkdir()
                prepare(folder)
                synchronize_folder(self.folder)
                before = self.volume.count()
                if operations is None:
                    change(folder)
                    operations = self.volume.count() - before
                    continue
                self.command(f"arm {cut_after}")
                try:
                    change(folder)
                    succeeded = True
                except (OSError, sqlite3.Error):
                    succeeded = False
                self.command("cut")
                self.command(restore)
                yield folder, succeeded
            cut_after += 1

    @staticmethod
    def prepare_file(folder: Path) -> None:
        write(folder / "file", b"old")
        synchronize_folder(folder)

    def test_a_durably_replaced_file_has_the_old_or_the_new_content(self) -> None:
        def replace(folder: Path) -> None:
            write(folder / "new", b"new" * 10_000)
            os.rename(folder / "new", folder / "file")
            synchronize_folder(folder)

        found = set()
        for folder, succeeded in self.results(replace, self.prepare_file):
            content = (folder / "file").read_bytes()
            self.assertIn(content, [b"new" * 10_000] if succeeded else [b"old", b"new" * 10_000])
            found.add((content[:3], succeeded))
        self.assertEqual(found, {(b"old", False), (b"new", False), (b"new", True)})

    def test_a_file_replaced_without_synchronization_is_sometimes_torn(self) -> None:
        def replace(folder: Path) -> None:
            write(folder / "new", b"new" * 10_000, synchronizes=False)
            os.rename(folder / "new", folder / "file")
            synchronize_folder(folder)

        contents = {(folder / "file").read_bytes() for folder, _ in self.results(replace, self.prepare_file)}
        self.assertIn(b"", contents)
        self.assertGreater(len(contents), 4)

    @staticmethod
    def connect(folder: Path) -> closing[sqlite3.Connection]:
        connection = sqlite3.connect(folder / "database", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return closing(connection)

    def test_a_database_with_a_log_keeps_its_commits(self) -> None:
        def prepare(folder: Path) -> None:
            with self.connect(folder) as connection:
                connection.execute("CREATE TABLE moments(id INTEGER PRIMARY KEY, text TEXT)")
                connection.execute("INSERT INTO moments VALUES(0, 'first')")
            synchronize_folder(folder)

        def insert(folder: Path) -> None:
            self.committed = 1
            with self.connect(folder) as connection:
                for index in range(1, 4):
                    connection.execute("INSERT INTO moments VALUES(?, ?)", (index, "text" * 2000))
                    self.committed = index + 1
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        found = set()
        for folder, _ in self.results(insert, prepare):
            committed = self.committed
            with self.connect(folder) as connection:
                self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
                rows = connection.execute("SELECT id, length(text) FROM moments ORDER BY id").fetchall()
            self.assertEqual(rows, [(0, 5), (1, 8000), (2, 8000), (3, 8000)][: len(rows)])
            self.assertIn(len(rows), [committed, committed + 1])
            found.add(len(rows))
        self.assertEqual(found, {1, 2, 3, 4})

    def test_processes_share_a_database(self) -> None:
        with self.connect(self.folder) as connection:
            connection.execute("CREATE TABLE counter(value INTEGER)")
            connection.execute("INSERT INTO counter VALUES(0)")
        code = f"""
import sqlite3
connection = sqlite3.connect({str(self.folder / 'database')!r}, isolation_level=None, timeout=60)
connection.execute("PRAGMA synchronous=FULL")
for _ in range(200):
    connection.execute("UPDATE counter SET value = value + 1")
"""
        processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
        self.assertEqual([process.wait(TIMEOUT * 4) for process in processes], [0, 0, 0])
        self.command("restore forget")
        with self.connect(self.folder) as connection:
            self.assertEqual(connection.execute("SELECT value FROM counter").fetchall(), [(600,)])
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


if __name__ == "__main__":
    unittest.main()
