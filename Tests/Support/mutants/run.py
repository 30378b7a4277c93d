#!/usr/bin/env python3
"""Applies the mutants to copies of their modules one at a time, and checks that a test of the module fails for each.

The tests must pass without a mutant first. They have their default sizes, whatever MOMENTS_ROUNDS says.

usage: run.py [--list] [--keep] [--sanitize SANITIZER] [name ...]
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import data_store
import mutants
import repository

MUTANTS = mutants.MUTANTS + data_store.MUTANTS + repository.MUTANTS

ROOT = Path(__file__).resolve().parents[3]
TEST = ["swift", "test", "--disable-xctest"]
BUILD = ["swift", "build", "--build-tests"]
# Timeouts are in seconds.
BUILD_TIMEOUT = 1800
# For the tests without a mutant. The timeout with a mutant is three times as long as they take, but at least a minute.
TEST_TIMEOUT = 600

# Only Multicast and its tests, because the whole package would be rebuilt for every mutant.
MULTICAST_MANIFEST = """\
// swift-tools-version: 6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "Mutants",
  platforms: [.macOS(.v15)],
  targets: [
    .target(name: "Multicast", swiftSettings: swiftSettings),
    .target(
      name: "MulticastTesting", dependencies: ["Multicast"], swiftSettings: swiftSettings),
    .target(name: "TestRounds", path: "Tests/Support/TestRounds", swiftSettings: swiftSettings),
    .testTarget(
      name: "MulticastTests", dependencies: ["Multicast", "MulticastTesting", "TestRounds"],
      swiftSettings: swiftSettings),
  ]
)
"""


@dataclass(frozen=True)
class Group:
    """Modules whose mutants are tested in the same copy of the package."""

    modules: tuple
    # Paths of the folders that the copy needs.
    folders: tuple
    # A function without parameters that returns the manifest of the copy.
    manifest: Callable[[], str]


def manifest_with_tests(kept):
    """Returns the manifest of the package without test targets, except those with the given names."""
    text = (ROOT / "Package.swift").read_text()
    parts, position = [], 0
    for start in [match.start() for match in re.finditer(r"\s+\.testTarget\(", text)]:
        end = end_of_call(text, start)
        if re.search(r'name: "(\w+)"', text[start:end])[1] not in kept:
            parts.append(text[position:start])
            position = end + 1 if text[end] == "," else end
    return "".join(parts) + text[position:]


def end_of_call(text, start):
    """Returns the position after the closing parenthesis of the first call at or after a position."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    raise ValueError(f"no closing parenthesis after position {start}")


GROUPS = [
    Group(
        ("Multicast",),
        ("Sources/Multicast", "Sources/MulticastTesting", "Tests/MulticastTests", "Tests/Support/TestRounds"),
        lambda: MULTICAST_MANIFEST,
    ),
    Group(
        ("DataStore", "Repository"),
        ("Sources", "Tests/DataStoreTests", "Tests/RepositoryTests", "Tests/Support"),
        lambda: manifest_with_tests({"DataStoreTests", "RepositoryTests"}),
    ),
]


def copy_package(group, folder):
    for part in group.folders:
        shutil.copytree(ROOT / part, folder / part, symlinks=True)
    (folder / "Package.swift").write_text(group.manifest())


def test(module):
    """Returns the command that runs the tests of a module."""
    return TEST + ["--filter", f"{module}Tests"]


def kill_session(session):
    """Kills all remaining processes of a session, such as tests that hang.

    The test runner and the processes of exit tests have separate process groups, but belong to one session.
    """
    listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True).stdout
    for pid in map(int, listing.split()):
        try:
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # The process has already ended.


def run(command, folder, timeout):
    """Runs a command, and returns its exit status (None after the timeout) and its output."""
    environment = {name: value for name, value in os.environ.items() if name != "MOMENTS_ROUNDS"}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_session(process.pid)
            process.wait()
        output.seek(0)
        return status, output.read()


def patched(mutant, folder):
    """Returns the new text of each file that the mutant changes; raises LookupError if the mutant doesn't apply."""
    texts = {}
    for name, search, replacement in mutant.patches:
        path = folder / "Sources" / mutant.module / name
        text = texts.get(path) or path.read_text()
        if text.count(search) != 1:
            raise LookupError(f"{name} has {text.count(search)} occurrences of: {search.strip().splitlines()[0]}")
        texts[path] = text.replace(search, replacement)
    return texts


def inapplicable(mutant):
    """Returns the reason why a mutant no longer applies; None if it applies."""
    try:
        patched(mutant, ROOT)
        return None
    except (LookupError, OSError) as error:
        return f"{mutant.name} no longer applies: {error}"


def verdict(mutant, folder, timeout, options):
    """Tests a mutant, and returns the result and its details.

    The options are those of the commands that build and run the tests.
    """
    texts = patched(mutant, folder)
    originals = {path: path.read_text() for path in texts}
    try:
        for path, text in texts.items():
            path.write_text(text)
        status, output = run(BUILD + options, folder, BUILD_TIMEOUT)
        if status != 0:
            errors = [line for line in output.splitlines() if "error:" in line]
            return "DOES NOT BUILD", errors[0] if errors else output[-300:]
        status, output = run(test(mutant.module) + options + ["--skip-build"], folder, timeout)
        if status == 0:
            return "SURVIVED", mutant.contract
        tests = failed_tests(output)
        if tests:
            hang = ", and a test hung" if status is None else ""
            return "killed", f"by {len(tests)} tests, such as: {min(tests, key=len)}{hang}"
        if status is None:
            return "killed", "by the timeout"
        crashes = ("Fatal error:", "unexpected signal", "ERROR: AddressSanitizer", "WARNING: ThreadSanitizer")
        return ("killed", "by a crash") if any(text in output for text in crashes) else ("DID NOT RUN", output[-300:])
    finally:
        for path, text in originals.items():
            path.write_text(text)


def test_mutants(members, group, options, keeps_copy):
    """Tests mutants of a group in a copy of its modules, and returns the names of those that weren't killed.

    Returns None if the tests fail without a mutant.
    """
    # The system's temporary folder may be too small for a build.
    parent = ROOT / ".build"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mutants-", dir=parent))
    try:
        copy_package(group, folder)
        timeouts = test_without_mutants({mutant.module for mutant in members}, folder, options)
        if timeouts is None:
            return None
        survivors = []
        for mutant in members:
            start = time.monotonic()
            result, detail = verdict(mutant, folder, timeouts[mutant.module], options)
            if result != "killed":
                survivors.append(mutant.name)
            print(f"{result:18}{mutant.name} ({time.monotonic() - start:.0f} s): {detail}", flush=True)
        return survivors
    finally:
        if keeps_copy:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


def test_without_mutants(modules, folder, options):
    """Returns the timeout of each module's tests with a mutant; None if they fail without one."""
    status, output = run(BUILD + options, folder, BUILD_TIMEOUT)
    timeouts = {}
    for module in sorted(modules):
        start = time.monotonic()
        if status == 0:
            status, output = run(test(module) + options + ["--skip-build"], folder, TEST_TIMEOUT)
        timeouts[module] = max(60, 3 * (time.monotonic() - start))
    if status == 0:
        return timeouts
    print(output)
    print("The tests failed without a mutant; they must pass before mutants can be tested.")
    return None


def failed_tests(output):
    """Returns the names of the tests that failed."""
    return {
        line.split('"')[1] for line in output.splitlines() if line.startswith("✘ Test ") and line.count('"') > 1
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="check that all mutants apply, list them and exit")
    parser.add_argument("--keep", action="store_true", help="keep the temporary copy of the package")
    parser.add_argument("--sanitize", metavar="SANITIZER", help="build and run the tests with this sanitizer")
    parser.add_argument("names", nargs="*", help="the mutants to test; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not arguments.names or mutant.name in arguments.names]
    faults = [error for error in map(inapplicable, MUTANTS) if error]
    if faults:
        print("\n".join(faults))
        return 1
    if arguments.list:
        for mutant in chosen:
            print(f"{mutant.name}: {mutant.contract}")
        return 0

    options = [f"--sanitize={arguments.sanitize}"] if arguments.sanitize else []
    # On SIGTERM, the `finally` blocks must still end all processes and remove the temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    for group in GROUPS:
        members = [mutant for mutant in chosen if mutant.module in group.modules]
        if members:
            survivors = test_mutants(members, group, options, arguments.keep)
            if survivors is None:
                return 2
            faults += survivors
    print(f"{len(chosen) - len(faults)} of {len(chosen)} mutants were killed.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
