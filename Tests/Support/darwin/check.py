#!/usr/bin/env python3
"""Type-checks the modules of the package as on Darwin, with stand-ins for Darwin's modules; see README.md.

usage: check.py [--keep]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STAND_INS = Path(__file__).resolve().parent / "stand-ins"

# In an order in which each module follows those that it imports. `Darwin` and `Network` have the names of the real
# modules, so `canImport` finds them.
STAND_IN_MODULES = ["DarwinStructures", "Darwin", "DarwinDispatch", "DarwinFoundation", "Network"]

# The modules that exist on Linux as well, and their stand-ins.
RENAMED_IMPORTS = {"Dispatch": "DarwinDispatch", "Foundation": "DarwinFoundation"}

# The other conditions whose values differ between Linux and macOS.
CONDITIONS = {
    "os(macOS)": "true",
    "os(Linux)": "false",
    "canImport(Glibc)": "false",
    "canImport(Musl)": "false",
    "canImport(FoundationNetworking)": "false",
}

CONDITION = re.compile(r"\s*#(?:if|elseif)\b")
IMPORT = re.compile(r"(\s*(?:@\w+(?:\(\w+\))? )?(?:\w+ )?import )(\w+)\b")


def darwin_line(line):
    """Returns a line of source code with the conditions and imports of Darwin."""
    if CONDITION.match(line):
        for condition, value in CONDITIONS.items():
            line = line.replace(condition, value)
        return line
    match = IMPORT.match(line)
    if match and match[2] in RENAMED_IMPORTS:
        return match[1] + RENAMED_IMPORTS[match[2]] + line[match.end():]
    return line


class Target:
    """A target of the package."""

    def __init__(self, description):
        self.name = description["name"]
        parent = "Tests" if description["type"] == "test" else "Sources"
        self.path = Path(description.get("path", f"{parent}/{self.name}"))
        self.excluded = [self.path / excluded for excluded in description["exclude"]]
        self.dependencies = []
        for dependency in description["dependencies"]:
            [(name, condition)] = dependency.values()
            # Only the platform matters, because all traits are enabled.
            if "macos" in ((condition or {}).get("platformNames") or ["macos"]):
                self.dependencies.append(name)
        self.features = [
            setting["kind"]["enableUpcomingFeature"]["_0"] for setting in description["settings"]
            if "enableUpcomingFeature" in setting["kind"]]
        self.system_package = description.get("pkgConfig")

    @property
    def sources(self):
        """The Swift files, relative to the package; none for a module of C."""
        paths = [path.relative_to(ROOT) for path in sorted((ROOT / self.path).rglob("*.swift"))]
        return [path for path in paths if not any(excluded in path.parents for excluded in self.excluded)]


class Check:
    def __init__(self, folder):
        self.modules = folder / "modules"
        self.copies = folder / "copies"
        self.modules.mkdir()
        package = json.loads(subprocess.run(
            ["swift", "package", "dump-package"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
        self.language_mode = package["toolsVersion"]["_version"].split(".")[0]
        self.traits = [trait["name"] for trait in package["traits"]]
        self.targets = {target.name: target for target in map(Target, package["targets"])}

    def run(self):
        """Checks all modules, each after its dependencies, and returns whether they have no errors."""
        subprocess.run(["swiftc", "--version"], check=True)
        for name in STAND_IN_MODULES:
            if not self.compile(name, sorted((STAND_INS / name).glob("*.swift")), [], STAND_INS):
                return False
        results = {}
        with ThreadPoolExecutor(os.cpu_count()) as executor:
            # A check waits only for checks that are submitted earlier, so it doesn't wait for a free thread.
            for target in self.sorted_targets():
                dependencies = [results[name] for name in target.dependencies]
                results[target.name] = executor.submit(self.check_after, dependencies, target)
        return all([result.result() for result in results.values()])

    def sorted_targets(self):
        """Returns the targets, each after its dependencies."""
        names = {}

        def add(name):
            for needed in self.targets[name].dependencies:
                add(needed)
            names[name] = None

        for name in self.targets:
            add(name)
        return [self.targets[name] for name in names]

    def check_after(self, dependencies, target):
        if all([result.result() for result in dependencies]):
            return self.check(target)
        print(f"{target.name}: not checked, because a dependency has errors")
        return False

    def check(self, target):
        sources = target.sources
        if not sources:
            return True
        for path in sources:
            lines = (ROOT / path).read_text().splitlines(keepends=True)
            copy = self.copies / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text("".join(map(darwin_line, lines)))
        flags = ["-warnings-as-errors", "-package-name", "moments", "-enable-testing"]
        for feature in target.features:
            flags += ["-enable-upcoming-feature", feature]
        for trait in self.traits:
            flags += ["-D", trait]
        for name in sorted(self.all_dependencies(target)):
            flags += self.c_flags(self.targets[name])
        return self.compile(target.name, sources, flags, self.copies)

    def all_dependencies(self, target):
        """Returns the names of the direct and indirect dependencies."""
        names = set(target.dependencies)
        for name in target.dependencies:
            names |= self.all_dependencies(self.targets[name])
        return names

    def c_flags(self, target):
        """Returns the flags that make a module of C importable; none for a module of Swift."""
        if target.sources:
            return []
        folder = ROOT / target.path
        if not target.system_package:
            module_map = self.modules / f"{target.name}.modulemap"
            module_map.write_text(f'module {target.name} {{ umbrella "{folder}/include" export * }}\n')
            return ["-Xcc", f"-fmodule-map-file={module_map}"]
        words = subprocess.run(
            ["pkg-config", "--cflags", target.system_package], check=True, stdout=subprocess.PIPE, text=True).stdout
        flags = [f"-fmodule-map-file={folder}/module.modulemap"] + words.split()
        return [word for flag in flags for word in ("-Xcc", flag)]

    def compile(self, name, sources, flags, folder):
        # Without `-whole-module-optimization` the compiler would skip the bodies of functions.
        command = [
            "swiftc", "-emit-module", "-emit-module-path", self.modules / f"{name}.swiftmodule", "-module-name", name,
            "-parse-as-library", "-whole-module-optimization", "-Onone", "-swift-version", self.language_mode,
            "-I", self.modules, *flags, *sources]
        result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        outcome = "has no errors" if result.returncode == 0 else "has errors"
        print(f"{name} {outcome}\n{result.stdout}", end="", flush=True)
        return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the folder with the converted sources")
    keeps = parser.parse_args().keep
    folder = Path(tempfile.mkdtemp(prefix="darwin-"))
    try:
        succeeded = Check(folder).run()
    finally:
        if keeps:
            print(folder)
        else:
            shutil.rmtree(folder)
    if not succeeded:
        sys.exit("error: The sources don't compile with the stand-ins for Darwin.")


if __name__ == "__main__":
    main()
