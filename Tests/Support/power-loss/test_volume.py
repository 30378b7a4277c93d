"""Tests of the model: pending changes, the result of a loss of power, and the count of operations."""

from __future__ import annotations

import errno
import random
import unittest
from collections.abc import Callable
from typing import Any, Union

from volume import BLOCK_SIZE, Attributes, File, Folder, Inode, Volume

SEEDS = range(200)

Tree = dict[bytes, Union[bytes, "Tree"]]


def tree(folder: Folder) -> Tree:
    found: Tree = {}
    for name, inode in folder.names.items():
        found[name] = tree(inode) if isinstance(inode, Folder) else bytes(inode.content)
    return found


class VolumeTestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.volume = Volume()

    @property
    def root(self) -> Folder:
        return self.volume.root

    @property
    def tree(self) -> Tree:
        return tree(self.root)

    def create(self, name: bytes, content: bytes = b"") -> File:
        file = self.volume.create_file(self.root, name, Attributes(0o600, 0, 0))
        if content:
            self.volume.write(file, 0, content)
        return file

    def create_folder(self, name: bytes) -> Folder:
        return self.volume.create_folder(self.root, name, Attributes(0o700, 0, 0))

    def create_durable(self, name: bytes, content: bytes = b"") -> File:
        file = self.create(name, content)
        self.volume.synchronize(file)
        self.volume.synchronize(self.root)
        return file

    def create_durable_folder(self, name: bytes) -> Folder:
        folder = self.create_folder(name)
        self.volume.synchronize(self.root)
        return folder

    def file(self, name: bytes) -> File:
        inode = self.root.names[name]
        assert isinstance(inode, File)
        return inode

    def assert_fails(self, code: int, method: Callable[..., Any], *arguments: Any) -> None:
        with self.assertRaises(OSError) as context:
            method(*arguments)
        self.assertEqual(context.exception.errno, code)


def outcomes(change: Callable[[VolumeTestCase], object], result: Callable[[VolumeTestCase], Any]) -> set[Any]:
    """Returns the results of restores with many seeds."""
    found = set()
    for seed in SEEDS:
        case = VolumeTestCase()
        case.setUp()
        change(case)
        case.volume.restore(seed)
        found.add(result(case))
    return found


class ForgetTests(VolumeTestCase):
    def test_content_survives_only_if_it_was_synchronized(self) -> None:
        file = self.create_durable(b"file", b"old")
        self.volume.write(file, 1, b"newer")
        self.assertEqual(self.tree, {b"file": b"onewer"})
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b"old"})
        self.volume.write(self.file(b"file"), 1, b"newer")
        self.volume.synchronize(self.file(b"file"))
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b"onewer"})

    def test_a_file_is_lost_without_a_durable_name(self) -> None:
        self.volume.synchronize(self.create(b"file", b"content"))
        self.volume.restore()
        self.assertEqual(self.tree, {})

    def test_a_file_is_empty_without_durable_content(self) -> None:
        self.create(b"file", b"content")
        self.volume.synchronize(self.root)
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b""})

    def test_a_truncation_survives_only_if_it_was_synchronized(self) -> None:
        self.volume.truncate(self.create_durable(b"file", b"content"), 2)
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b"content"})
        self.volume.truncate(self.file(b"file"), 2)
        self.volume.truncate(self.file(b"file"), 4)
        self.volume.synchronize(self.file(b"file"))
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b"co\0\0"})

    def test_each_change_of_names_is_pending_until_the_folder_is_synchronized(self) -> None:
        durable = {b"one": b"1", b"two": b"2", b"folder": {}}
        changes: list[Callable[[], object]] = [
            lambda: self.volume.unlink(self.root, b"one"),
            lambda: self.volume.rename(self.root, b"one", self.root, b"two"),
            lambda: self.volume.link(self.file(b"one"), self.root, b"three"),
            lambda: self.volume.remove_folder(self.root, b"folder"),
            lambda: self.create_folder(b"other"),
            lambda: self.create(b"file"),
        ]
        for change in changes:
            self.setUp()
            self.create_durable(b"one", b"1")
            self.create_durable(b"two", b"2")
            self.create_durable_folder(b"folder")
            change()
            changed = self.tree
            self.assertNotEqual(changed, durable)
            self.volume.restore()
            self.assertEqual(self.tree, durable)
            change()
            self.volume.synchronize(self.root)
            self.volume.restore()
            self.assertEqual(self.tree, changed)

    def test_the_synchronization_of_a_folder_covers_neither_content_nor_other_folders(self) -> None:
        folder = self.create_durable_folder(b"folder")
        self.volume.create_file(folder, b"file", Attributes(0o600, 0, 0))
        self.volume.synchronize(self.root)
        self.volume.restore()
        self.assertEqual(self.tree, {b"folder": {}})

    def test_a_rename_across_folders_is_made_durable_by_each_folder_separately(self) -> None:
        def rename() -> Folder:
            self.setUp()
            self.create_durable(b"file", b"content")
            folder = self.create_durable_folder(b"folder")
            self.volume.rename(self.root, b"file", folder, b"moved")
            return folder

        self.volume.synchronize(rename())
        self.volume.restore()
        self.assertEqual(self.tree, {b"file": b"content", b"folder": {b"moved": b"content"}})
        self.assertEqual(self.file(b"file").links, 2)
        rename()
        self.volume.synchronize(self.root)
        self.volume.restore()
        self.assertEqual(self.tree, {b"folder": {}})

    def test_a_folder_has_one_name_even_if_half_of_a_rename_was_lost(self) -> None:
        target = self.create_durable_folder(b"target")
        self.create_durable_folder(b"folder")
        self.volume.rename(self.root, b"folder", target, b"moved")
        self.volume.synchronize(target)
        self.volume.restore()
        self.assertEqual(self.tree, {b"folder": {}, b"target": {}})

    def test_writes_to_an_unlinked_file_have_no_effect(self) -> None:
        file = self.create_durable(b"file", b"content")
        self.volume.unlink(self.root, b"file")
        self.volume.synchronize(self.root)
        self.volume.write(file, 0, b"ignored")
        self.volume.synchronize(file)
        self.volume.restore()
        self.assertEqual(self.tree, {})

    def test_every_inode_but_the_root_has_a_new_number(self) -> None:
        file = self.create_durable(b"file")
        folder = self.create_durable_folder(b"folder")
        self.volume.restore()
        numbers = {inode.number for inode in self.root.names.values()}
        self.assertEqual(len(numbers), 2)
        self.assertTrue(numbers.isdisjoint({file.number, folder.number, self.root.number}))


class KeepTests(VolumeTestCase):
    def test_durable_contents_stay_and_restored_contents_are_durable(self) -> None:
        for seed in SEEDS:
            self.setUp()
            self.create_durable(b"file", b"content")
            self.create(b"pending", b"content")
            self.volume.restore(seed)
            self.assertEqual(self.tree[b"file"], b"content")
            restored = self.tree
            self.volume.restore()
            self.assertEqual(self.tree, restored)

    def test_a_seed_always_gives_the_same_result(self) -> None:
        def random_tree() -> str:
            volume = Volume()
            Script(volume, 1).run(60)
            volume.restore(7)
            return str(tree(volume.root))

        self.assertEqual(random_tree(), random_tree())

    def test_a_write_may_be_torn_between_blocks_and_only_there(self) -> None:
        def write(case: VolumeTestCase) -> None:
            file = case.create_durable(b"file", b"a" * 4 * BLOCK_SIZE)
            case.volume.write(file, BLOCK_SIZE // 2, b"b" * 2 * BLOCK_SIZE)

        old, new = b"a" * (BLOCK_SIZE // 2), b"b" * (BLOCK_SIZE // 2)
        expected = {
            old + first + second + second + third + old + old + old
            for first in (old, new)
            for second in (old, new)
            for third in (old, new)
        }
        self.assertEqual(outcomes(write, lambda case: case.tree[b"file"]), expected)

    def test_length_and_data_are_kept_apart(self) -> None:
        def append(case: VolumeTestCase) -> None:
            case.volume.write(case.create_durable(b"file", b"a"), 1, b"b")

        self.assertEqual(outcomes(append, lambda case: case.tree[b"file"]), {b"a", b"a\0", b"ab"})

    def test_writes_are_kept_in_any_order(self) -> None:
        def write(case: VolumeTestCase) -> None:
            file = case.create_durable(b"file", bytes(2 * BLOCK_SIZE))
            case.volume.write(file, 0, b"1")
            case.volume.write(file, BLOCK_SIZE, b"2")

        found = outcomes(write, lambda case: bytes(case.file(b"file").content)[::BLOCK_SIZE])
        self.assertEqual(found, {b"\0\0", b"1\0", b"\0002", b"12"})

    def test_a_truncation_is_kept_or_lost(self) -> None:
        def truncate(case: VolumeTestCase) -> None:
            file = case.create_durable(b"file", b"abcd")
            case.volume.truncate(file, 1)
            case.volume.truncate(file, 2)

        # If only the second change is kept, it doesn't make the file longer, because the file is longer already.
        self.assertEqual(outcomes(truncate, lambda case: case.tree[b"file"]), {b"abcd", b"a", b"a\0"})

    def test_a_rename_is_kept_or_lost_as_a_whole(self) -> None:
        def rename(case: VolumeTestCase) -> None:
            case.create_durable(b"old", b"old")
            case.create_durable(b"new", b"new")
            case.volume.rename(case.root, b"new", case.root, b"old")

        found = outcomes(rename, lambda case: tuple(sorted(case.tree.items())))
        self.assertEqual(found, {((b"new", b"new"), (b"old", b"old")), ((b"old", b"new"),)})

    def test_an_unlink_may_be_kept_while_the_replacement_is_lost(self) -> None:
        def replace(case: VolumeTestCase) -> None:
            case.create_durable(b"file", b"old")
            case.volume.unlink(case.root, b"file")
            case.volume.synchronize(case.create(b"file", b"new"))

        found = outcomes(replace, lambda case: case.tree.get(b"file"))
        self.assertEqual(found, {b"old", b"new", None})

    def test_an_unlink_removes_only_the_file_it_was_made_for(self) -> None:
        def replace_and_unlink(case: VolumeTestCase) -> None:
            case.create_durable(b"file", b"old")
            case.create_durable(b"other", b"new")
            case.volume.rename(case.root, b"other", case.root, b"file")
            case.volume.unlink(case.root, b"file")

        found = outcomes(replace_and_unlink, lambda case: tuple(sorted(case.tree.items())))
        both = ((b"file", b"old"), (b"other", b"new"))
        self.assertEqual(found, {both, ((b"file", b"new"),), ()})

    def test_a_file_is_lost_or_kept_with_any_part_of_its_content(self) -> None:
        found = outcomes(lambda case: case.create(b"file", b"a"), lambda case: case.tree.get(b"file"))
        self.assertEqual(found, {None, b"", b"\0", b"a"})

    def test_sometimes_nearly_all_or_nearly_no_changes_are_kept(self) -> None:
        def create(case: VolumeTestCase) -> None:
            for index in range(20):
                case.create(b"%d" % index)

        counts = outcomes(create, lambda case: len(case.tree))
        self.assertLessEqual(min(counts), 1)
        self.assertGreaterEqual(max(counts), 19)


class PowerTests(VolumeTestCase):
    def test_power_is_cut_after_the_given_number_of_operations(self) -> None:
        self.volume.arm(3)
        file = self.create(b"file", b"content")
        self.assertFalse(self.volume.is_cut)
        self.volume.require_power()
        self.volume.synchronize(file)
        self.assertTrue(self.volume.is_cut)
        self.assert_fails(errno.EIO, self.volume.require_power)
        self.volume.restore()
        self.volume.require_power()

    def test_a_restore_and_disarming_end_the_countdown(self) -> None:
        for end in [self.volume.disarm, self.volume.restore]:
            self.volume.arm(1)
            end()
            self.create(str(end).encode()[:20])
            self.assertFalse(self.volume.is_cut)

    def test_arming_with_zero_cuts_immediately(self) -> None:
        self.volume.arm(0)
        self.assertTrue(self.volume.is_cut)

    def test_each_operation_counts_once(self) -> None:
        file = self.create(b"file", b"content")
        self.assertEqual(self.volume.operation_count, 2)
        folder = self.create_folder(b"folder")
        self.volume.truncate(file, 1)
        self.volume.link(file, folder, b"link")
        self.volume.rename(folder, b"link", self.root, b"moved")
        self.volume.unlink(self.root, b"moved")
        self.volume.remove_folder(self.root, b"folder")
        self.volume.synchronize(file)
        self.volume.synchronize(self.root)
        self.assertEqual(self.volume.operation_count, 10)

    def test_reads_failures_and_mapped_memory_do_not_count(self) -> None:
        file = self.create(b"file")
        self.volume.lookup(self.root, b"file")
        self.assert_fails(errno.ENOENT, self.volume.unlink, self.root, b"none")
        self.volume.write_back(file, 0, b"content")
        self.assertEqual(self.volume.operation_count, 1)
        self.assertEqual(self.tree, {b"file": b"content"})


class FailureTests(VolumeTestCase):
    def test_operations_fail_as_system_calls_do(self) -> None:
        volume, root = self.volume, self.root
        file = self.create(b"file")
        folder = self.create_folder(b"folder")
        attributes = Attributes(0o600, 0, 0)
        inner = volume.create_file(folder, b"inner", attributes)
        self.assert_fails(errno.ENOENT, volume.lookup, root, b"none")
        self.assert_fails(errno.ENAMETOOLONG, volume.lookup, root, b"n" * 256)
        self.assert_fails(errno.EEXIST, volume.create_file, root, b"file", attributes)
        self.assert_fails(errno.EEXIST, volume.create_folder, root, b"file", attributes)
        self.assert_fails(errno.EEXIST, volume.link, inner, root, b"file")
        self.assert_fails(errno.EPERM, volume.link, folder, root, b"link")
        self.assert_fails(errno.EISDIR, volume.unlink, root, b"folder")
        self.assert_fails(errno.ENOTDIR, volume.remove_folder, root, b"file")
        self.assert_fails(errno.ENOTEMPTY, volume.remove_folder, root, b"folder")
        self.assert_fails(errno.EEXIST, volume.rename, root, b"file", folder, b"inner", False)
        self.assert_fails(errno.EISDIR, volume.rename, root, b"file", root, b"folder")
        self.assert_fails(errno.ENOTDIR, volume.rename, root, b"folder", root, b"file")
        self.assert_fails(errno.EFBIG, volume.write, file, 1 << 30, b"a")
        self.assert_fails(errno.EFBIG, volume.truncate, file, (1 << 30) + 1)
        volume.unlink(folder, b"inner")
        volume.remove_folder(root, b"folder")
        self.assert_fails(errno.ENOENT, volume.create_file, folder, b"file", attributes)
        self.assert_fails(errno.ENOENT, volume.link, inner, root, b"link")
        self.assert_fails(errno.ENOENT, volume.rename, root, b"file", folder, b"file")

    def test_a_rename_onto_another_name_of_the_same_file_does_nothing(self) -> None:
        file = self.create(b"one")
        self.volume.link(file, self.root, b"two")
        self.volume.rename(self.root, b"one", self.root, b"two")
        self.assertEqual((set(self.tree), file.links), ({b"one", b"two"}, 2))


class Script:
    """Random operations on a volume."""

    def __init__(self, volume: Volume, seed: int) -> None:
        self._volume = volume
        self._random = random.Random(seed)

    def inodes(self) -> list[Inode]:
        found: list[Inode] = [self._volume.root]
        for inode in found:
            if isinstance(inode, Folder):
                found += inode.names.values()
        return found

    def run(self, count: int) -> None:
        for _ in range(count):
            try:
                self.step()
            except OSError:
                pass

    def step(self) -> None:
        volume, generator = self._volume, self._random
        inodes = self.inodes()
        folders = [inode for inode in inodes if isinstance(inode, Folder)]
        files = [inode for inode in inodes if isinstance(inode, File)]
        folder, name = generator.choice(folders), generator.choice([b"a", b"b", b"c"])
        other, new_name = generator.choice(folders), generator.choice([b"a", b"b", b"c"])
        number = generator.randrange(11)
        if number <= 1:
            volume.create_file(folder, name, Attributes(0o600, 0, 0))
        elif number == 2:
            volume.create_folder(folder, name, Attributes(0o700, 0, 0))
        elif number == 3:
            # The kernel refuses to move a folder into itself, so this moves only files to other folders.
            is_file = isinstance(folder.names.get(name), File)
            volume.rename(folder, name, other if is_file else folder, new_name)
        elif number == 4:
            volume.unlink(folder, name)
        elif number == 5:
            volume.remove_folder(folder, name)
        elif number == 6:
            volume.synchronize(generator.choice(inodes))
        elif files:
            file = generator.choice(files)
            if number == 7:
                volume.link(file, folder, name)
            elif number == 8:
                volume.truncate(file, generator.randrange(3 * BLOCK_SIZE))
            else:
                volume.write(file, generator.randrange(2 * BLOCK_SIZE), generator.randbytes(BLOCK_SIZE))


class RandomTests(unittest.TestCase):
    def test_with_everything_synchronized_nothing_is_lost(self) -> None:
        for seed in SEEDS:
            volume = Volume()
            script = Script(volume, seed)
            script.run(60)
            before = tree(volume.root)
            for inode in script.inodes():
                volume.synchronize(inode)
            volume.restore(None if seed % 2 else seed)
            self.assertEqual(tree(volume.root), before)

    def test_after_any_restore_links_are_counted_and_nothing_is_pending(self) -> None:
        for seed in SEEDS:
            volume = Volume()
            script = Script(volume, seed)
            for _ in range(3):
                script.run(40)
                volume.restore(seed)
                inodes = script.inodes()
                for inode in {inode.number: inode for inode in inodes}.values():
                    self.assertEqual(inode.links, sum(other is inode for other in inodes))
                before = tree(volume.root)
                volume.restore()
                self.assertEqual(tree(volume.root), before)


if __name__ == "__main__":
    unittest.main()
