"""A pure model of a volume that can lose power.

Each file and folder has two states. Processes see the volatile state; a loss of power leaves the durable state. A
change reaches the volatile state immediately and stays pending until a synchronization makes it durable. The
synchronization of a file covers its content and length, that of a folder covers the names in it. Permissions, owners
and times are durable immediately.

Methods raise `OSError` where system calls would fail.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Optional, Union

# In bytes.
BLOCK_SIZE = 4096
MAXIMUM_FILE_SIZE = 1 << 30
MAXIMUM_NAME_LENGTH = 255

ROOT_NUMBER = 1

# The probabilities with which a restore keeps pending changes. The seed determines which one is used. With 0.5 alone,
# results such as "all but one of twenty" would hardly ever occur.
ODDS = (0.1, 0.5, 0.9)

# Decides whether a pending change, or a block of a write, is kept.
Keeps = Callable[[], bool]


def failure(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@dataclass
class Attributes:
    """The attributes of an inode, whose changes are durable immediately."""

    permissions: int
    user: int
    group: int
    # In nanoseconds.
    accessed: int = field(default_factory=time.time_ns)
    modified: int = field(default_factory=time.time_ns)
    changed: int = field(default_factory=time.time_ns)

    def touch(self) -> None:
        self.modified = self.changed = time.time_ns()


@dataclass(frozen=True)
class Write:
    """Pending bytes, without the length of the file."""

    offset: int
    data: bytes

    def blocks(self) -> Iterator[Write]:
        """The parts that a loss of power keeps or loses as a whole."""
        start, end = self.offset, self.offset + len(self.data)
        while start < end:
            next_start = min(end, start - start % BLOCK_SIZE + BLOCK_SIZE)
            yield Write(start, self.data[start - self.offset : next_start - self.offset])
            start = next_start


@dataclass(frozen=True)
class Lengthening:
    """A pending length, after a write past the end or a truncation to a larger size."""

    length: int


@dataclass(frozen=True)
class Shortening:
    """A pending length, after a truncation to a smaller size."""

    length: int


def resize(content: bytearray, length: int) -> None:
    if length < len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


class File:
    def __init__(self, number: int, attributes: Attributes, content: bytes = b"") -> None:
        self.number = number
        self.attributes = attributes
        # The number of names of the file in the volatile state.
        self.links = 0
        self.content = bytearray(content)
        self._durable = bytearray(content)
        self._pending: list[Union[Write, Lengthening, Shortening]] = []

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if end > MAXIMUM_FILE_SIZE:
            raise failure(errno.EFBIG)
        if not data:
            return
        if end > len(self.content):
            self._pending.append(Lengthening(end))
            resize(self.content, end)
        self._pending.append(Write(offset, data))
        self.content[offset:end] = data
        self.attributes.touch()

    def truncate(self, length: int) -> None:
        if length > MAXIMUM_FILE_SIZE:
            raise failure(errno.EFBIG)
        if length != len(self.content):
            is_longer = length > len(self.content)
            self._pending.append(Lengthening(length) if is_longer else Shortening(length))
            resize(self.content, length)
        self.attributes.touch()

    def synchronize(self) -> None:
        self._settle(lambda: True)

    def survivor(self, number: int, keeps: Keeps) -> File:
        """Returns the file after a loss of power. After this call, only the content of the old file may be read."""
        self._settle(keeps)
        return File(number, self.attributes, bytes(self._durable))

    def _settle(self, keeps: Keeps) -> None:
        """Makes pending changes durable, or drops them."""
        # Bytes past the length stay for now, because a later change may make the file longer again.
        content, length = self._durable, len(self._durable)
        for change in self._pending:
            if isinstance(change, Write):
                for block in change.blocks():
                    if keeps():
                        resize(content, max(len(content), block.offset + len(block.data)))
                        content[block.offset : block.offset + len(block.data)] = block.data
            elif keeps():
                if isinstance(change, Lengthening):
                    length = max(length, change.length)
                else:
                    length = min(length, change.length)
                    del content[length:]
        resize(content, length)
        self._pending.clear()


@dataclass(frozen=True)
class NameChange:
    """A pending change of the names in one folder, which a loss of power keeps or loses as a whole.

    It removes a name from an inode, or adds one, or both. A rename across folders is two changes, one in each folder.
    """

    inode: Inode
    removed: Optional[bytes] = None
    added: Optional[bytes] = None

    def apply(self, names: dict[bytes, Inode]) -> None:
        # If earlier changes were lost, the name may belong to another inode. Then there is nothing to remove.
        if self.removed is not None and names.get(self.removed) is self.inode:
            del names[self.removed]
        if self.added is not None:
            names[self.added] = self.inode


class Folder:
    def __init__(self, number: int, attributes: Attributes) -> None:
        self.number = number
        self.attributes = attributes
        self.links = 0
        self.names: dict[bytes, Inode] = {}
        self._durable: dict[bytes, Inode] = {}
        self._pending: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        change.apply(self.names)
        self._pending.append(change)
        self.attributes.touch()

    def synchronize(self) -> None:
        self._settle(lambda: True)

    def settled_names(self, keeps: Keeps) -> dict[bytes, Inode]:
        """Returns the names after a loss of power. The folder must not be used afterwards."""
        self._settle(keeps)
        return self._durable

    def restore(self, name: bytes, inode: Inode) -> None:
        """Adds a durable name."""
        self.names[name] = self._durable[name] = inode
        inode.links += 1

    def _settle(self, keeps: Keeps) -> None:
        """Makes pending changes durable, or drops them.

        Changes are applied in the order in which they were made: two changes either commute, or the later one prevails.
        """
        for change in self._pending:
            if keeps():
                change.apply(self._durable)
        self._pending.clear()


Inode = Union[File, Folder]


class Volume:
    """The tree of files, the power supply, and a count of operations.

    An operation is a call of a method that changes or synchronizes something and succeeds, except `write_back`.
    """

    def __init__(self, user: int = 0, group: int = 0) -> None:
        self._last_number = ROOT_NUMBER
        self.root = Folder(ROOT_NUMBER, Attributes(0o755, user, group))
        self.root.links = 1
        self.is_cut = False
        self.operation_count = 0
        # The number of operations until the power is cut.
        self._remaining: Optional[int] = None

    # Power supply

    def cut(self) -> None:
        self.is_cut = True
        self._remaining = None

    def arm(self, count: int) -> None:
        """Cuts the power after the given number of operations; immediately if it is 0."""
        self._remaining = count
        if count == 0:
            self.cut()

    def disarm(self) -> None:
        self._remaining = None

    def require_power(self) -> None:
        if self.is_cut:
            raise failure(errno.EIO)

    def restore(self, seed: Optional[int] = None) -> None:
        """Restores power, after cutting it if it was not cut yet.

        All pending changes are lost. With a seed, each pending change is kept or lost at random instead. The remaining
        contents are durable.

        Every inode except the root gets a new number, so that it is not confused with the inode that was open before.
        """
        self.root = self._survivors(self._keeps(seed))
        self.is_cut = False
        self._remaining = None

    @staticmethod
    def _keeps(seed: Optional[int]) -> Keeps:
        if seed is None:
            return lambda: False
        generator = random.Random(seed)
        odds = generator.choice(ODDS)
        return lambda: generator.random() < odds

    def _survivors(self, keeps: Keeps) -> Folder:
        root = Folder(ROOT_NUMBER, self.root.attributes)
        root.links = 1
        survivors: dict[int, Inode] = {ROOT_NUMBER: root}
        folders = [(self.root, root)]
        for old_folder, folder in folders:
            # Names are sorted, so that a seed always gives the same result.
            for name, old in sorted(old_folder.settled_names(keeps).items()):
                survivor = survivors.get(old.number)
                if isinstance(survivor, Folder):
                    # Half of a rename across folders was lost. A folder has only one name, so the other one is dropped.
                    continue
                if survivor is None:
                    number = self._new_number()
                    if isinstance(old, Folder):
                        survivor = Folder(number, old.attributes)
                        folders.append((old, survivor))
                    else:
                        survivor = old.survivor(number, keeps)
                    survivors[old.number] = survivor
                folder.restore(name, survivor)
        return root

    def _executed(self) -> None:
        self.operation_count += 1
        if self._remaining is not None:
            self._remaining -= 1
            if self._remaining == 0:
                self.cut()

    def _new_number(self) -> int:
        self._last_number += 1
        return self._last_number

    # Files

    def write(self, file: File, offset: int, data: bytes) -> None:
        file.write(offset, data)
        self._executed()

    def write_back(self, file: File, offset: int, data: bytes) -> None:
        """Writes back mapped memory, which is not an operation because the system chooses its time."""
        file.write(offset, data)

    def truncate(self, file: File, length: int) -> None:
        file.truncate(length)
        self._executed()

    def synchronize(self, inode: Inode) -> None:
        """Makes the content of a file, or the names in a folder, durable."""
        inode.synchronize()
        self._executed()

    # Names

    def lookup(self, folder: Folder, name: bytes) -> Inode:
        self._require_name(name)
        inode = folder.names.get(name)
        if inode is None:
            raise failure(errno.ENOENT)
        return inode

    def create_file(self, folder: Folder, name: bytes, attributes: Attributes) -> File:
        self._require_free(folder, name)
        file = File(self._new_number(), attributes)
        self._add(folder, name, file)
        self._executed()
        return file

    def create_folder(self, folder: Folder, name: bytes, attributes: Attributes) -> Folder:
        self._require_free(folder, name)
        new_folder = Folder(self._new_number(), attributes)
        self._add(folder, name, new_folder)
        self._executed()
        return new_folder

    def link(self, file: Inode, folder: Folder, name: bytes) -> None:
        if isinstance(file, Folder):
            raise failure(errno.EPERM)
        if file.links == 0:
            raise failure(errno.ENOENT)
        self._require_free(folder, name)
        self._add(folder, name, file)
        self._executed()

    def unlink(self, folder: Folder, name: bytes) -> None:
        inode = self.lookup(folder, name)
        if isinstance(inode, Folder):
            raise failure(errno.EISDIR)
        self._remove(folder, name, inode)
        self._executed()

    def remove_folder(self, folder: Folder, name: bytes) -> None:
        inode = self.lookup(folder, name)
        self._require_empty(inode)
        self._remove(folder, name, inode)
        self._executed()

    def rename(
        self, folder: Folder, name: bytes, new_folder: Folder, new_name: bytes, replaces: bool = True
    ) -> None:
        """Moves an inode to another name.

        The system itself refuses to move a folder into itself, so the volume never gets such a request.
        """
        inode = self.lookup(folder, name)
        self._require_alive(new_folder)
        self._require_name(new_name)
        replaced = new_folder.names.get(new_name)
        if replaced is not None:
            if not replaces:
                raise failure(errno.EEXIST)
            if replaced is inode:
                return
            if isinstance(inode, Folder):
                self._require_empty(replaced)
            elif isinstance(replaced, Folder):
                raise failure(errno.EISDIR)
            replaced.links -= 1
            replaced.attributes.changed = time.time_ns()
        if folder is new_folder:
            folder.change(NameChange(inode, removed=name, added=new_name))
        else:
            new_folder.change(NameChange(inode, added=new_name))
            folder.change(NameChange(inode, removed=name))
        inode.attributes.changed = time.time_ns()
        self._executed()

    @staticmethod
    def _add(folder: Folder, name: bytes, inode: Inode) -> None:
        folder.change(NameChange(inode, added=name))
        inode.links += 1
        inode.attributes.changed = time.time_ns()

    @staticmethod
    def _remove(folder: Folder, name: bytes, inode: Inode) -> None:
        folder.change(NameChange(inode, removed=name))
        inode.links -= 1
        inode.attributes.changed = time.time_ns()

    @staticmethod
    def _require_name(name: bytes) -> None:
        if len(name) > MAXIMUM_NAME_LENGTH:
            raise failure(errno.ENAMETOOLONG)

    @staticmethod
    def _require_alive(folder: Folder) -> None:
        """Fails for a folder that was removed while it was open."""
        if folder.links == 0:
            raise failure(errno.ENOENT)

    def _require_free(self, folder: Folder, name: bytes) -> None:
        self._require_alive(folder)
        self._require_name(name)
        if name in folder.names:
            raise failure(errno.EEXIST)

    @staticmethod
    def _require_empty(inode: Inode) -> None:
        if isinstance(inode, File):
            raise failure(errno.ENOTDIR)
        if inode.names:
            raise failure(errno.ENOTEMPTY)
