"""A volume in memory that can lose power: `python3 power_loss.py MOUNTPOINT`. It reads commands from standard input."""

from __future__ import annotations

import argparse
import errno
import os
import select
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Optional

import fuse_protocol as fuse
from fuse_protocol import Mount, MountFailure, Operation
from volume import BLOCK_SIZE, MAXIMUM_NAME_LENGTH, ROOT_NUMBER, Attributes, File, Folder, Inode, Volume, failure

STANDARD_INPUT = 0
STANDARD_OUTPUT = 1

EXIT_UNAVAILABLE = 69

NANOSECONDS = 10**9

Reply = bytes
Handler = Callable[[int, memoryview], Reply]


class FileSystem:
    """Answers the kernel's requests by means of a volume.

    The kernel's nodes are the inodes, identified by their numbers. A restore forgets nodes and handles, and their
    numbers are never used again. Requests for forgotten nodes and handles fail with EIO, including those that write
    back memory mapped earlier.

    One kind of request works without power and with a forgotten handle: reading from a file, until it is closed. The
    kernel reads only into its cache, and serves a call of `read` from the cache only after it has requested the
    attributes, which fails. For mapped memory it doesn't request them, and a failed read would end the process with
    SIGBUS. SQLite reads the index of its log in this way, and must stay alive to report an error.
    """

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        # The number of times the kernel has looked up each node. A node is kept until the kernel forgets it.
        self._lookups: dict[int, int] = {}
        self._nodes: dict[int, Inode] = {ROOT_NUMBER: volume.root}
        self._files: dict[int, File] = {}
        # Handles that a restore has forgotten and that processes still have open.
        self._dead_files: dict[int, File] = {}
        self._folders: dict[int, tuple[Folder, list[tuple[bytes, Inode]]]] = {}
        self._last_handle = 0
        self._owner = (0, 0)
        self.is_initialized = False
        self._handlers: dict[int, Handler] = {
            Operation.LOOKUP: self._lookup,
            Operation.GETATTR: self._get_attributes,
            Operation.SETATTR: self._set_attributes,
            Operation.SYMLINK: self._refuse,
            Operation.MKNOD: self._refuse,
            Operation.MKDIR: self._create_folder,
            Operation.UNLINK: self._unlink,
            Operation.RMDIR: self._remove_folder,
            Operation.RENAME: self._rename,
            Operation.RENAME2: self._rename2,
            Operation.LINK: self._link,
            Operation.OPEN: self._open,
            Operation.WRITE: self._write,
            Operation.STATFS: self._status,
            Operation.FSYNC: self._synchronize_file,
            Operation.FLUSH: self._flush,
            Operation.OPENDIR: self._open_folder,
            Operation.READDIR: self._read_folder,
            Operation.FSYNCDIR: self._synchronize_folder,
            Operation.CREATE: self._create_file,
        }

    def restore(self, seed: Optional[int]) -> None:
        self._volume.restore(seed)
        self._lookups.clear()
        self._nodes = {ROOT_NUMBER: self._volume.root}
        self._dead_files.update(self._files)
        self._files.clear()
        self._folders.clear()

    def reply(self, request: memoryview) -> Optional[tuple[Reply, Reply]]:
        """Returns the header and the body of the reply; None for a request that gets no reply."""
        _, operation, unique, node, user, group, _, _, _ = fuse.REQUEST_HEADER.unpack_from(request)
        body = request[fuse.REQUEST_HEADER.size :]
        if operation == Operation.FORGET:
            self._forget(node, *fuse.FORGET_REQUEST.unpack_from(body))
            return None
        if operation == Operation.BATCH_FORGET:
            start = fuse.BATCH_FORGET_REQUEST.size
            (count,) = fuse.BATCH_FORGET_REQUEST.unpack_from(body)
            for index in range(count):
                self._forget(*fuse.FORGET_ONE.unpack_from(body, start + index * fuse.FORGET_ONE.size))
            return None
        if operation == Operation.INTERRUPT:
            # Requests are answered in order, so the interrupted one has already been answered.
            return None
        error = 0
        answer = b""
        self._owner = (user, group)
        try:
            if operation == Operation.INIT:
                answer = self._initialize(body)
            elif operation in (Operation.RELEASE, Operation.RELEASEDIR):
                # The process has already closed the handle, with or without power.
                (handle, _) = fuse.HANDLE_REQUEST.unpack_from(body)
                self._files.pop(handle, None)
                self._dead_files.pop(handle, None)
                self._folders.pop(handle, None)
            elif operation == Operation.READ:
                answer = self._read(body)
            elif operation != Operation.DESTROY:
                self._volume.require_power()
                handler = self._handlers.get(operation)
                if handler is None:
                    raise failure(errno.ENOSYS)
                answer = handler(node, body)
        except OSError as refusal:
            error = refusal.errno or errno.EIO
        return fuse.REPLY_HEADER.pack(fuse.REPLY_HEADER.size + len(answer), -error, unique), answer

    # The connection

    def _initialize(self, body: memoryview) -> Reply:
        major, minor, readahead, capabilities = fuse.INIT_REQUEST.unpack_from(body)
        if major != fuse.MAJOR_VERSION or minor < fuse.MINIMUM_MINOR_VERSION:
            raise failure(errno.EPROTO)
        self.is_initialized = True
        # Without a write cache, each write reaches the volume before it returns. Cached data is used for reads only
        # after a request for the attributes, which fails without power.
        capabilities &= fuse.INIT_BIG_WRITES | fuse.INIT_AUTO_INVAL_DATA | fuse.INIT_MAX_PAGES
        return fuse.INIT_REPLY.pack(
            fuse.MAJOR_VERSION,
            min(minor, fuse.MINOR_VERSION),
            readahead,
            capabilities,
            0,
            0,
            fuse.MAXIMUM_WRITE,
            1,
            fuse.MAXIMUM_PAGES,
        )

    def _refuse(self, node: int, body: memoryview) -> Reply:
        raise failure(errno.EPERM)

    def _status(self, node: int, body: memoryview) -> Reply:
        many = 1 << 30
        return fuse.STATFS_REPLY.pack(many, many, many, many, many, BLOCK_SIZE, MAXIMUM_NAME_LENGTH, BLOCK_SIZE)

    # Nodes

    def _inode(self, node: int) -> Inode:
        inode = self._nodes.get(node)
        if inode is None:
            raise failure(errno.EIO)
        return inode

    def _folder(self, node: int) -> Folder:
        inode = self._inode(node)
        if isinstance(inode, File):
            raise failure(errno.ENOTDIR)
        return inode

    def _forget(self, node: int, count: int) -> None:
        lookups = self._lookups.get(node)
        if lookups is None:
            return
        if lookups > count:
            self._lookups[node] = lookups - count
        else:
            del self._lookups[node], self._nodes[node]

    def _entry(self, inode: Inode) -> Reply:
        """Returns a reply that makes the inode known to the kernel, until the kernel forgets it."""
        number = inode.number
        self._nodes[number] = inode
        self._lookups[number] = self._lookups.get(number, 0) + 1
        return fuse.ENTRY_REPLY.pack(number, 0, 0, 0, 0, 0) + self._packed_attributes(inode)

    @staticmethod
    def _packed_attributes(inode: Inode) -> Reply:
        attributes = inode.attributes
        accessed, accessed_part = divmod(attributes.accessed, NANOSECONDS)
        modified, modified_part = divmod(attributes.modified, NANOSECONDS)
        changed, changed_part = divmod(attributes.changed, NANOSECONDS)
        if isinstance(inode, File):
            size, kind = len(inode.content), stat.S_IFREG
        else:
            size, kind = 0, stat.S_IFDIR
        return fuse.ATTRIBUTES.pack(
            inode.number,
            size,
            (size + 511) // 512,
            accessed,
            modified,
            changed,
            accessed_part,
            modified_part,
            changed_part,
            kind | attributes.permissions,
            inode.links,
            attributes.user,
            attributes.group,
            0,
            BLOCK_SIZE,
            0,
        )

    def _lookup(self, node: int, body: memoryview) -> Reply:
        (name,) = fuse.names(body)
        return self._entry(self._volume.lookup(self._folder(node), name))

    def _get_attributes(self, node: int, body: memoryview) -> Reply:
        return fuse.ATTRIBUTES_REPLY.pack(0, 0) + self._packed_attributes(self._inode(node))

    def _set_attributes(self, node: int, body: memoryview) -> Reply:
        (
            valid,
            _handle,
            size,
            _owner,
            accessed,
            modified,
            _changed,
            accessed_part,
            modified_part,
            _changed_part,
            mode,
            user,
            group,
        ) = fuse.SETATTR_REQUEST.unpack_from(body)
        inode = self._inode(node)
        attributes = inode.attributes
        if valid & fuse.SET_SIZE:
            if isinstance(inode, Folder):
                raise failure(errno.EISDIR)
            self._volume.truncate(inode, size)
        now = time.time_ns()
        if valid & fuse.SET_PERMISSIONS:
            attributes.permissions = stat.S_IMODE(mode)
        if valid & fuse.SET_USER:
            attributes.user = user
        if valid & fuse.SET_GROUP:
            attributes.group = group
        if valid & fuse.SET_ACCESSED:
            attributes.accessed = now if valid & fuse.SET_ACCESSED_NOW else accessed * NANOSECONDS + accessed_part
        if valid & fuse.SET_MODIFIED:
            attributes.modified = now if valid & fuse.SET_MODIFIED_NOW else modified * NANOSECONDS + modified_part
        attributes.changed = now
        return fuse.ATTRIBUTES_REPLY.pack(0, 0) + self._packed_attributes(inode)

    # Names

    def _attributes(self, mode: int) -> Attributes:
        user, group = self._owner
        return Attributes(stat.S_IMODE(mode), user, group)

    def _create_file(self, node: int, body: memoryview) -> Reply:
        flags, mode, _, _ = fuse.CREATE_REQUEST.unpack_from(body)
        (name,) = fuse.names(body[fuse.CREATE_REQUEST.size :])
        file = self._volume.create_file(self._folder(node), name, self._attributes(mode))
        return self._entry(file) + self._opened_file(file)

    def _create_folder(self, node: int, body: memoryview) -> Reply:
        mode, _ = fuse.MKDIR_REQUEST.unpack_from(body)
        (name,) = fuse.names(body[fuse.MKDIR_REQUEST.size :])
        return self._entry(self._volume.create_folder(self._folder(node), name, self._attributes(mode)))

    def _link(self, node: int, body: memoryview) -> Reply:
        (linked,) = fuse.LINK_REQUEST.unpack_from(body)
        (name,) = fuse.names(body[fuse.LINK_REQUEST.size :])
        inode = self._inode(linked)
        self._volume.link(inode, self._folder(node), name)
        return self._entry(inode)

    def _unlink(self, node: int, body: memoryview) -> Reply:
        (name,) = fuse.names(body)
        self._volume.unlink(self._folder(node), name)
        return b""

    def _remove_folder(self, node: int, body: memoryview) -> Reply:
        (name,) = fuse.names(body)
        self._volume.remove_folder(self._folder(node), name)
        return b""

    def _rename(self, node: int, body: memoryview) -> Reply:
        (new_folder,) = fuse.RENAME_REQUEST.unpack_from(body)
        name, new_name = fuse.names(body[fuse.RENAME_REQUEST.size :])
        self._volume.rename(self._folder(node), name, self._folder(new_folder), new_name)
        return b""

    def _rename2(self, node: int, body: memoryview) -> Reply:
        new_folder, flags = fuse.RENAME2_REQUEST.unpack_from(body)
        if flags & ~fuse.RENAME_NOREPLACE:
            raise failure(errno.EINVAL)
        name, new_name = fuse.names(body[fuse.RENAME2_REQUEST.size :])
        self._volume.rename(self._folder(node), name, self._folder(new_folder), new_name, replaces=flags == 0)
        return b""

    # Open files

    def _new_handle(self) -> int:
        self._last_handle += 1
        return self._last_handle

    def _opened_file(self, file: File) -> Reply:
        handle = self._new_handle()
        self._files[handle] = file
        # Without flags, the kernel drops the cached data of the file.
        return fuse.OPEN_REPLY.pack(handle, 0)

    def _file(self, handle: int) -> File:
        file = self._files.get(handle)
        if file is None:
            raise failure(errno.EIO)
        return file

    def _open(self, node: int, body: memoryview) -> Reply:
        inode = self._inode(node)
        if isinstance(inode, Folder):
            raise failure(errno.EISDIR)
        return self._opened_file(inode)

    def _read(self, body: memoryview) -> Reply:
        handle, offset, size, _, _, _ = fuse.TRANSFER_REQUEST.unpack_from(body)
        file = self._dead_files.get(handle) or self._file(handle)
        return bytes(file.content[offset : offset + size])

    def _write(self, node: int, body: memoryview) -> Reply:
        handle, offset, size, flags, _, _ = fuse.TRANSFER_REQUEST.unpack_from(body)
        data = bytes(body[fuse.TRANSFER_REQUEST.size : fuse.TRANSFER_REQUEST.size + size])
        file = self._file(handle)
        if flags & fuse.WRITE_FROM_CACHE:
            self._volume.write_back(file, offset, data)
        else:
            self._volume.write(file, offset, data)
        return fuse.WRITE_REPLY.pack(size)

    def _flush(self, node: int, body: memoryview) -> Reply:
        handle, _ = fuse.HANDLE_REQUEST.unpack_from(body)
        self._file(handle)
        return b""

    def _synchronize_file(self, node: int, body: memoryview) -> Reply:
        handle, _ = fuse.HANDLE_REQUEST.unpack_from(body)
        self._volume.synchronize(self._file(handle))
        return b""

    # Open folders

    def _open_folder(self, node: int, body: memoryview) -> Reply:
        handle = self._new_handle()
        self._folders[handle] = (self._folder(node), [])
        return fuse.OPEN_REPLY.pack(handle, 0)

    def _opened_folder(self, handle: int) -> tuple[Folder, list[tuple[bytes, Inode]]]:
        opened = self._folders.get(handle)
        if opened is None:
            raise failure(errno.EIO)
        return opened

    def _read_folder(self, node: int, body: memoryview) -> Reply:
        handle, offset, size, _, _, _ = fuse.TRANSFER_REQUEST.unpack_from(body)
        folder, entries = self._opened_folder(handle)
        if offset == 0:
            # A change during a read of the folder becomes visible when the folder is next read from the start.
            entries[:] = [(b".", folder), (b"..", folder), *folder.names.items()]
        answer = bytearray()
        for index in range(offset, len(entries)):
            name, inode = entries[index]
            kind = stat.S_IFREG if isinstance(inode, File) else stat.S_IFDIR
            entry = fuse.DIRECTORY_ENTRY.pack(inode.number, index + 1, len(name), kind >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return bytes(answer)

    def _synchronize_folder(self, node: int, body: memoryview) -> Reply:
        handle, _ = fuse.HANDLE_REQUEST.unpack_from(body)
        folder, _ = self._opened_folder(handle)
        self._volume.synchronize(folder)
        return b""


class Commands:
    """Executes the commands that the README describes."""

    def __init__(self, volume: Volume, file_system: FileSystem) -> None:
        self._volume = volume
        self._file_system = file_system

    def execute(self, line: str) -> str:
        words = line.split()
        try:
            if words == ["cut"]:
                self._volume.cut()
            elif words[:1] == ["arm"] and len(words) == 2:
                self._volume.arm(self._number(words[1]))
            elif words == ["disarm"]:
                self._volume.disarm()
            elif words == ["count"]:
                return str(self._volume.operation_count)
            elif words == ["is-cut"]:
                return "yes" if self._volume.is_cut else "no"
            elif words == ["restore", "forget"]:
                self._file_system.restore(None)
            elif words[:2] == ["restore", "keep"] and len(words) == 3:
                self._file_system.restore(self._number(words[2]))
            else:
                raise ValueError(f"unknown command: {line.strip()}")
        except ValueError as error:
            return f"error: {error}"
        return "ok"

    @staticmethod
    def _number(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"not a number: {text}")
        return int(text)


class Server:
    """Serves the kernel's requests and the commands sequentially, on one thread."""

    def __init__(self, mount: Mount, signals: socket.socket, parent: Optional[int]) -> None:
        volume = Volume(os.getuid(), os.getgid())
        self._file_system = FileSystem(volume)
        self._commands = Commands(volume, self._file_system)
        self._mount = mount
        self._buffer = bytearray(fuse.REQUEST_SIZE)
        self._view = memoryview(self._buffer)
        self._input = b""
        self.has_quit = False
        self._ends = [signals.fileno()] + ([] if parent is None else [parent])

    def run(self) -> None:
        """Serves until `quit`, the end of standard input or of the parent, a signal, or an unmount."""
        self.connect()
        say("ready")
        poll = select.poll()
        for descriptor in [self._mount.descriptor, STANDARD_INPUT, *self._ends]:
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._mount.descriptor:
                    is_open = self._serve_kernel()
                elif descriptor == STANDARD_INPUT:
                    is_open = self._serve_commands()
                else:
                    is_open = False
                if not is_open:
                    return

    def connect(self) -> None:
        """Returns once the kernel has accepted the connection."""
        while not self._file_system.is_initialized:
            select.select([self._mount.descriptor], [], [])
            if not self._serve_kernel():
                raise MountFailure("the kernel has closed the connection")

    def _serve_kernel(self) -> bool:
        """Serves one request. Returns false at the end of the connection."""
        try:
            size = os.readv(self._mount.descriptor, [self._buffer])
        except OSError as error:
            # A request may be interrupted before it is read.
            return error.errno != errno.ENODEV
        reply = self._file_system.reply(self._view[:size])
        if reply is None:
            return True
        try:
            os.writev(self._mount.descriptor, reply)
        except OSError as error:
            # A request may be interrupted before its reply.
            if error.errno != errno.ENOENT:
                return False
        return True

    def _serve_commands(self) -> bool:
        """Executes all pending commands. Returns false after the last command."""
        data = os.read(STANDARD_INPUT, 4096)
        if not data:
            return False
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            command = line.decode(errors="replace")
            if command.strip() == "quit":
                self.has_quit = True
                return False
            say(self._commands.execute(command))
        return True


def say(line: str) -> None:
    try:
        os.write(STANDARD_OUTPUT, f"{line}\n".encode())
    except BrokenPipeError:
        # A process that no longer reads replies has ended or is about to end, which the end of the input will show.
        pass


def catch_signals() -> tuple[socket.socket, socket.socket]:
    """Turns SIGTERM and SIGINT into bytes, readable from the first socket. The caller must keep both sockets."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # A parent may start processes from a thread that blocks signals, and processes inherit the blocked signals.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    return reading, writing


def end_of_parent() -> Optional[int]:
    """Returns a descriptor that is readable once the parent has ended; None if the system doesn't support it.

    The end of the input is not sufficient, because another child of the parent may have inherited the pipe's other end.
    """
    try:
        return os.pidfd_open(os.getppid())  # type: ignore[attr-defined,no-any-return,unused-ignore]
    except (AttributeError, OSError):
        return None


def options(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A volume in memory that can lose power.")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("mountpoint", nargs="?", metavar="MOUNTPOINT", help="an empty folder")
    chosen.add_argument("--check", action="store_true", help="only check whether a volume can be mounted")
    return parser.parse_args(arguments)


def serve(folder: str, is_check: bool) -> None:
    signals, _writing = catch_signals()
    mount = Mount(os.path.abspath(folder))
    try:
        server = Server(mount, signals, end_of_parent())
        if is_check:
            server.connect()
        else:
            server.run()
    finally:
        mount.close()
    if server.has_quit:
        say("ok")


def main() -> int:
    chosen = options()
    try:
        if chosen.check:
            with tempfile.TemporaryDirectory() as folder:
                serve(folder, is_check=True)
        else:
            serve(chosen.mountpoint, is_check=False)
    except MountFailure as error:
        print(f"power_loss.py: {error}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
