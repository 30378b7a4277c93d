#!/usr/bin/env python3
"""Applies the mutants to Sources/Multicast one at a time, and checks that a test fails for each.

The tests must pass without a mutant first.

usage: run.py [--list] [--keep] [--sanitize SANITIZER] [name ...]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[3]
TEST = ["swift", "test", "--disable-xctest", "--filter", "MulticastTests"]
BUILD = ["swift", "build", "--build-tests"]
# Timeouts are in seconds.
BUILD_TIMEOUT = 600
# For the tests without a mutant. The timeout with a mutant is three times as long as they take, but at least a minute.
TEST_TIMEOUT = 600

# Only the module and its tests, because the whole package would be rebuilt for every mutant.
MANIFEST = """\
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
    .testTarget(
      name: "MulticastTests", dependencies: ["Multicast", "MulticastTesting"], swiftSettings: swiftSettings),
  ]
)
"""


def copy_package(folder):
    for part in ("Sources/Multicast", "Sources/MulticastTesting", "Tests/MulticastTests"):
        shutil.copytree(ROOT / part, folder / part)
    (folder / "Package.swift").write_text(MANIFEST)


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
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
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
        path = folder / "Sources/Multicast" / name
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
        status, output = run(TEST + options + ["--skip-build"], folder, timeout)
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
    # The system's temporary folder may be too small for a build.
    parent = ROOT / ".build"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mutants-", dir=parent))
    try:
        copy_package(folder)
        status, output = run(BUILD + options, folder, BUILD_TIMEOUT)
        start = time.monotonic()
        if status == 0:
            status, output = run(TEST + options + ["--skip-build"], folder, TEST_TIMEOUT)
        timeout = max(60, 3 * (time.monotonic() - start))
        if status != 0:
            print(output)
            print("The tests failed without a mutant; they must pass before mutants can be tested.")
            return 2
        for mutant in chosen:
            start = time.monotonic()
            result, detail = verdict(mutant, folder, timeout, options)
            if result != "killed":
                faults.append(mutant.name)
            print(f"{result:18}{mutant.name} ({time.monotonic() - start:.0f} s): {detail}", flush=True)
        print(f"{len(chosen) - len(faults)} of {len(chosen)} mutants were killed.")
        return 1 if faults else 0
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
