"""The part of the kernel's FUSE protocol that the volume needs, and the mounting of a connection.

The layouts are those of `linux/fuse.h`, which are the same on all processors.

No library is used, because libraries that address files by their paths cannot keep a replaced file open without a name,
nor give a file a new identity after a loss of power. The kernel would then write memory that was mapped before the loss
of power into the file that was opened after it.
"""

from __future__ import annotations

import array
import errno
import os
import socket
import subprocess
import sys
from enum import IntEnum
from struct import Struct

MAJOR_VERSION = 7
MINOR_VERSION = 31
# The first version in which the kernel supports `max_pages`.
MINIMUM_MINOR_VERSION = 28

# The largest number of bytes of one write, and so of one operation. The kernel splits longer writes.
MAXIMUM_WRITE = 1 << 20
# The same number in pages of 4096 bytes.
MAXIMUM_PAGES = 256
# The size of a buffer for any request, in bytes: the largest write, and room for the headers.
REQUEST_SIZE = MAXIMUM_WRITE + 4096


class Operation(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


# Capabilities of a connection.
INIT_BIG_WRITES = 1 << 5
INIT_AUTO_INVAL_DATA = 1 << 12
INIT_MAX_PAGES = 1 << 22

# The attributes that a request sets.
SET_PERMISSIONS = 1 << 0
SET_USER = 1 << 1
SET_GROUP = 1 << 2
SET_SIZE = 1 << 3
SET_ACCESSED = 1 << 4
SET_MODIFIED = 1 << 5
SET_ACCESSED_NOW = 1 << 7
SET_MODIFIED_NOW = 1 << 8

WRITE_FROM_CACHE = 1
RENAME_NOREPLACE = 1

# length, operation, unique, node, user, group, process, length of extensions, padding
REQUEST_HEADER = Struct("=IIQQIIIHH")
# length, error, unique
REPLY_HEADER = Struct("=IiQ")

# major, minor, readahead, capabilities
INIT_REQUEST = Struct("=IIII")
# major, minor, readahead, capabilities, background, congestion threshold, write size, time granularity, pages
INIT_REPLY = Struct("=IIIIHHIIH34x")
# node, generation, seconds the entry is valid, seconds the attributes are valid, nanoseconds of both
ENTRY_REPLY = Struct("=QQQQII")
# seconds and nanoseconds the attributes are valid
ATTRIBUTES_REPLY = Struct("=QI4x")
# number, size, blocks, seconds of three times, nanoseconds of them, mode, links, user, group, device, block size, flags
ATTRIBUTES = Struct("=QQQQQQIIIIIIIIII")
# valid, handle, size, lock owner, seconds of three times, nanoseconds of them, mode, user, group
SETATTR_REQUEST = Struct("=I4xQQQQQQIIII4xII4x")
# mode, umask
MKDIR_REQUEST = Struct("=II")
# flags, mode, umask, flags of the open
CREATE_REQUEST = Struct("=IIII")
# handle, flags
OPEN_REPLY = Struct("=QI4x")
# handle, offset, size, flags of the read or write, lock owner, flags
TRANSFER_REQUEST = Struct("=QQIIQI4x")
# size
WRITE_REPLY = Struct("=I4x")
# handle, flags
HANDLE_REQUEST = Struct("=QI4x")
# new folder
RENAME_REQUEST = Struct("=Q")
# new folder, flags
RENAME2_REQUEST = Struct("=QI4x")
# node
LINK_REQUEST = Struct("=Q")
# number of lookups
FORGET_REQUEST = Struct("=Q")
# count
BATCH_FORGET_REQUEST = Struct("=I4x")
# node, number of lookups
FORGET_ONE = Struct("=QQ")
# blocks, free blocks, available blocks, files, free files, block size, name length, fragment size
STATFS_REPLY = Struct("=QQQQQIII28x")
# number, offset of the next one, length of the name, type
DIRECTORY_ENTRY = Struct("=QQII")


def names(body: memoryview) -> list[bytes]:
    """Returns the names at the end of a request, each of which is terminated by a zero."""
    return bytes(body).split(b"\0")[:-1]


class MountFailure(Exception):
    pass


class Mount:
    """A connection to the kernel, mounted at a folder.

    `fusermount3` mounts it, because only root may mount directly. A helper process waits for the end of this process
    and unmounts it, so that nothing stays mounted if this process is killed. The option `auto_unmount` serves the same
    purpose, but some releases ignore it for users other than root.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.descriptor = self._mount()
        os.set_blocking(self.descriptor, False)
        # The helper's input ends with this process. In a separate session, it gets no signals from a terminal.
        self._unmounting = subprocess.Popen(
            ["sh", "-c", 'cat; exec fusermount3 -u -z -- "$1"', "sh", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _mount(self) -> int:
        own, other = socket.socketpair()
        with own, other:
            command = ["fusermount3", "-o", "default_permissions,fsname=power-loss", "--", self._folder]
            environment = {**os.environ, "_FUSE_COMMFD": str(other.fileno())}
            try:
                process = subprocess.run(
                    command, env=environment, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, capture_output=True
                )
            except FileNotFoundError:
                raise MountFailure("fusermount3 is missing; install the package fuse3") from None
            if process.returncode != 0:
                message = process.stderr.decode(errors="replace").strip()
                raise MountFailure(f"cannot mount at {self._folder}: {message}")
            return self._received(own)

    @staticmethod
    def _received(own: socket.socket) -> int:
        descriptors = array.array("i")
        _, messages, _, _ = own.recvmsg(1, socket.CMSG_SPACE(descriptors.itemsize))
        for _, kind, data in messages:
            if kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: descriptors.itemsize])
        return descriptors[0]

    def close(self) -> None:
        """Fails all calls in flight, and unmounts."""
        os.close(self.descriptor)
        self._unmounting.communicate()
        try:
            os.lstat(self._folder)
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                print(f"power_loss.py: {self._folder} is still mounted", file=sys.stderr)
