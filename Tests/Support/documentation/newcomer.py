#!/usr/bin/env python3
"""Builds and runs the first example of the README and of every catalog, in a package as a user would make it.

Each example is the first Swift block of its Markdown file. The next text block states what it prints.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRATCH = ROOT / ".build" / "newcomer"


def example(path):
    """Returns the first Swift block of a file, the text block after it, and the products in the file's snippet."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    first = next(index for index, block in enumerate(blocks) if block[0] == "swift")
    output = next(code for language, code in blocks[first + 1 :] if language == "text")
    products = next(code for language, code in blocks if language == "text" and ".product(" in code)
    return blocks[first][1], output, re.findall(r"^\.product\(.*?\)", products, re.MULTILINE)


def main():
    files = {"Readme": ROOT / "README.md"}
    for path in sorted(ROOT.glob("Sources/*/*.docc/*.md")):
        if path.stem == path.parent.stem:
            files[path.stem + "Example"] = path
    examples = {name: example(path) for name, path in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "Newcomer"
        package.mkdir()
        init = ["swift", "package", "init", "--type", "executable"]
        subprocess.run(init, cwd=package, check=True, stdout=subprocess.DEVNULL)
        for entry in (package / "Sources").rglob("*.swift"):
            entry.unlink()
        targets = []
        for name, (code, _, products) in examples.items():
            source = package / "Sources" / name / "main.swift"
            source.parent.mkdir(parents=True)
            source.write_text(code, encoding="utf-8")
            targets.append(f'.executableTarget(name: "{name}", dependencies: [{", ".join(products)}])')
        manifest = (package / "Package.swift").read_text(encoding="utf-8").split("let package")[0]
        dependency = f'.package(name: "Moments", path: {json.dumps(str(ROOT))})'
        manifest += 'let package = Package(name: "Newcomer", platforms: [.macOS(.v15)], '
        manifest += f"dependencies: [{dependency}], targets: [\n"
        (package / "Package.swift").write_text(manifest + ",\n".join(targets) + "\n])\n", encoding="utf-8")
        swift = ["--package-path", str(package), "--scratch-path", str(SCRATCH)]
        subprocess.run(["swift", "build", *swift], check=True)
        products = Path(subprocess.check_output(["swift", "build", *swift, "--show-bin-path"], text=True).strip())
        failed = False
        for name, (_, expected, _) in examples.items():
            run = subprocess.run([products / name], stdout=subprocess.PIPE, text=True, timeout=120)
            if run.returncode != 0 or run.stdout != expected:
                print(f"error: {name} ended with {run.returncode} and printed {run.stdout!r}, not {expected!r}.")
                failed = True
    return 1 if failed else 0


sys.exit(main())
