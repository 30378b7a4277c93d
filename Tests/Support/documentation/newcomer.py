#!/usr/bin/env python3
"""Builds and runs the first example of the README and of every catalog, in a package as a user would make it.

Each example is the first Swift block of its Markdown file. The next text block states what it prints. The manifest of
the package consists of the file's snippet as it stands, except that the path of the dependency is the path of this
checkout. Snippets with different dependencies need packages of their own, because a package has each dependency once.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRATCH = ROOT / ".build" / "newcomer"


class Example:
    """The first example of a Markdown file, what it prints, and the snippet that declares its dependencies."""

    def __init__(self, name, path):
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        first = next(index for index, block in enumerate(blocks) if block[0] == "swift")
        self.name = name
        self.code = blocks[first][1]
        self.output = next(code for language, code in blocks[first + 1 :] if language == "text")
        snippet = next(code for language, code in blocks if language == "text" and ".package(" in code)
        package, target = re.fullmatch(
            r"// The dependencies of the package[^\n]*:\n(.*)// The dependencies of the target:\n(.*)", snippet, re.DOTALL
        ).groups()
        if package.count('"../Moments"') != 1:
            raise ValueError(f"{path} has no dependency at ../Moments: {package!r}")
        self.package_dependencies = package.replace('"../Moments"', json.dumps(str(ROOT)))
        self.target_dependencies = target
        # The stores that the snippet's traits add. A trait is named after its store.
        traits = re.search(r"traits: \[(.*?)\]", package)
        has_store = traits and '"DataStore"' in target
        self.stores = [f"{trait}Store" for trait in re.findall(r'"(\w+)"', traits[1])] if has_store else []

    def write(self, sources):
        """Writes the sources of the example's target."""
        folder = sources / self.name
        folder.mkdir(parents=True)
        (folder / "main.swift").write_text(self.code, encoding="utf-8")
        if self.stores:
            types = ", ".join(f"{store}.self" for store in self.stores)
            (folder / "Stores.swift").write_text(
                f"import DataStore\n\nlet stores: [any KeyValueStore.Type] = [{types}]\n", encoding="utf-8"
            )


def examples():
    """Returns the examples of the README and of the landing pages of the catalogs."""
    found = [Example("Readme", ROOT / "README.md")]
    for path in sorted(ROOT.glob("Sources/*/*.docc/*.md")):
        if path.stem == path.parent.stem:
            found.append(Example(f"{path.stem}Example", path))
    return found


def failures(group, scratch):
    """Builds a package of examples with the same package dependencies, and returns the failures of its programs."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "Newcomer"
        package.mkdir()
        init = ["swift", "package", "init", "--type", "executable"]
        subprocess.run(init, cwd=package, check=True, stdout=subprocess.DEVNULL)
        for entry in (package / "Sources").rglob("*.swift"):
            entry.unlink()
        targets = []
        for example in group:
            example.write(package / "Sources")
            targets.append(
                f'.executableTarget(name: "{example.name}", dependencies: [\n{example.target_dependencies}])'
            )
        manifest = (package / "Package.swift").read_text(encoding="utf-8").split("let package")[0]
        manifest += 'let package = Package(name: "Newcomer", platforms: [.macOS(.v15)], dependencies: [\n'
        manifest += group[0].package_dependencies + "], targets: [\n" + ",\n".join(targets) + "\n])\n"
        (package / "Package.swift").write_text(manifest, encoding="utf-8")
        swift = ["--package-path", str(package), "--scratch-path", str(scratch)]
        subprocess.run(["swift", "build", *swift], check=True)
        products = Path(subprocess.check_output(["swift", "build", *swift, "--show-bin-path"], text=True).strip())
        for example in group:
            run = subprocess.run([products / example.name], stdout=subprocess.PIPE, text=True, timeout=120)
            if run.returncode != 0 or run.stdout != example.output:
                result = f"{example.name} ended with {run.returncode} and printed {run.stdout!r}"
                yield f"{result}, not {example.output!r}."


def main():
    groups = {}
    for example in examples():
        groups.setdefault(example.package_dependencies, []).append(example)
    failed = False
    for index, group in enumerate(groups.values()):
        for failure in failures(group, SCRATCH / str(index)):
            print(f"error: {failure}")
            failed = True
    return 1 if failed else 0


sys.exit(main())
