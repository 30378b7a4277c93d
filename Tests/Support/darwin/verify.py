#!/usr/bin/env python3
"""Compares the stand-ins for Darwin's C library with Apple's headers; see README.md.

usage: verify.py [HEADERS]

HEADERS is a folder with Darwin's headers, such as `usr/include` of a macOS SDK. By default, the headers in the Python
package `ziglang` are used.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STAND_INS = Path(__file__).resolve().parent / "stand-ins"
INCLUDED = [
    "dirent.h", "errno.h", "fcntl.h", "netinet/in.h", "poll.h", "sched.h", "signal.h", "spawn.h", "stdio.h", "stdlib.h",
    "string.h", "sys/file.h", "sys/ioctl.h", "sys/resource.h", "sys/socket.h", "sys/stat.h", "sys/statvfs.h",
    "sys/time.h", "sys/un.h", "sys/wait.h", "termios.h", "time.h", "unistd.h",
]

# The names that Swift's overlay of Darwin declares, and that C declares in another form or not at all.
OVERLAY = {"SIG_DFL", "SIG_IGN", "errno", "fcntl", "ioctl", "open", "openat"}
# The beginnings of the names of constants whose types the overlay decides.
OVERLAY_PREFIXES = ("S_IF", "TIOC")
# In <util.h>, which only the SDK has.
NOT_IN_HEADERS = {"openpty"}
# The functions that never return. The headers mark them with attributes, which the types don't show.
NEVER_RETURN = {"_exit", "abort", "exit"}
# The structures of which the stand-in has only a part: fewer fields, or shorter arrays.
PARTIAL = {"DIR", "__sigaction_u", "dirent", "siginfo_t", "sockaddr_un"}

SCALARS = {
    "char": "CChar", "signed char": "Int8", "unsigned char": "UInt8", "short": "Int16", "unsigned short": "UInt16",
    "int": "Int32", "unsigned int": "UInt32", "long": "Int", "unsigned long": "UInt", "long long": "Int64",
    "unsigned long long": "UInt64",
}


class Headers:
    """The declarations of Darwin's headers, as Swift imports them on a 64-bit Mac."""

    def __init__(self, folder):
        self.command = ["clang", "-target", "arm64-apple-macos15", "-fsyntax-only", "-nostdlibinc", "-isystem", folder]
        self.includes = "".join(f"#include <{name}>\n" for name in INCLUDED)
        tree = json.loads(self.compile("", "-Xclang", "-ast-dump=json").stdout)
        self.functions, self.structures, self.names = {}, {}, {}
        enumerations = {}
        for node in tree["inner"]:
            name = node.get("name")
            if node["kind"] == "FunctionDecl":
                self.functions[name] = node
            elif node["kind"] == "RecordDecl" and node.get("completeDefinition"):
                self.structures[name] = [field for field in node["inner"] if field["kind"] == "FieldDecl"]
            elif node["kind"] == "TypedefDecl":
                self.names[name] = node["type"]["qualType"]
            elif node["kind"] == "EnumDecl":
                enumerations[f"enum {name}"] = "UInt32"
        self.enumerations = enumerations

    def compile(self, text, *flags):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write(self.includes + text)
            file.flush()
            return subprocess.run(self.command + [*flags, file.name], capture_output=True, text=True, check=not text)

    def swift_type(self, c_type, is_pointee=False):
        """Returns the type that Swift imports a type of C as, without type aliases."""
        c_type = re.sub(r"\b(restrict|volatile|_Nonnull|_Nullable)\b", "", c_type).strip()
        optional = "?" if is_pointee else "!"
        function = re.fullmatch(r"(.*?)\s*\(\*\s*\)\((.*)\)", c_type)
        if function:
            parameters = ", ".join(self.swift_type(part) for part in function[2].split(", "))
            return f"(@convention(c) ({parameters}) -> {self.swift_type(function[1])}){optional}"
        array = re.fullmatch(r"(.*)\[(\d+)\]", c_type)
        if array:
            return "(" + ", ".join([self.swift_type(array[1].strip())] * int(array[2])) + ")"
        c_type = re.sub(r"\s*\bconst$", "", c_type)
        if c_type.endswith("*"):
            pointee = c_type[:-1].strip()
            is_constant = pointee.endswith("const") or (pointee.startswith("const ") and not pointee.endswith("*"))
            pointee = re.sub(r"^const | const$", "", pointee) if not pointee.endswith("*") else pointee
            mutable = "" if is_constant else "Mutable"
            if pointee == "void":
                return f"Unsafe{mutable}RawPointer{optional}"
            return f"Unsafe{mutable}Pointer<{self.swift_type(pointee, is_pointee=True)}>{optional}"
        if c_type == "void":
            return "Void"
        if c_type in ("size_t", "ssize_t"):
            return "Int"
        if c_type in SCALARS:
            return SCALARS[c_type]
        if c_type.startswith(("struct ", "union ", "enum ")):
            return c_type.split()[1]
        named = self.names[c_type]
        # Swift has a type for such a name, rather than an alias.
        if named.startswith(("struct ", "enum ")):
            return c_type
        return self.swift_type(named, is_pointee)

    def function_type(self, name):
        node = self.functions[name]
        parameters = [item["type"]["qualType"] for item in node.get("inner", []) if item["kind"] == "ParmVarDecl"]
        types = [self.swift_type(parameter) for parameter in parameters]
        if name in NEVER_RETURN:
            return types, "Never"
        text = node["type"]["qualType"]
        # The only function whose result is a function.
        result = "void (*)(int)" if name == "signal" else text[:text.index("(")].strip()
        return types, self.swift_type(result)


class StandIns:
    """The declarations of the stand-ins for the C library."""

    def __init__(self):
        self.constants, self.functions, self.structures, self.aliases = {}, [], {}, {}
        self.count = 0
        for module in ("Darwin", "DarwinStructures"):
            for path in sorted((STAND_INS / module).glob("*.swift")):
                for line in path.read_text().splitlines():
                    self.read(line)

    def read(self, line):
        """Reads a line, on which at most one declaration begins."""
        self.count += re.match(r"(@discardableResult )?public (var|func|typealias|struct)", line) is not None
        if match := re.fullmatch(r"public var (\w+): ([^{]+) \{ (.+) \}", line):
            self.constants[match[1]] = (match[2], match[3])
        elif match := re.match(r"public var (\w+): (.+) \{$", line):
            self.constants[match[1]] = (match[2], None)
        elif match := re.match(r"(@\w+ )?public func (\w+)\(", line):
            parameters, end = self.parameters(line, match.end())
            result = re.fullmatch(r"(?: -> (.+))? \{ fatalError\(\) \}", line[end:])
            self.functions.append((match[2], parameters, result[1] or "Void", bool(match[1])))
        elif match := re.fullmatch(r"public typealias (\w+) = (.+)", line):
            self.aliases[match[1]] = match[2]
        elif match := re.match(r"public struct (\w+)", line):
            self.structure = self.structures.setdefault(match[1], [])
        elif match := re.fullmatch(r"  public var (\w+): (.+)", line):
            self.structure.append((match[1], match[2]))

    def parameters(self, line, start):
        """Returns the types of the parameters that begin at an index of a line, and the index after them."""
        types, depth = [], 0
        for index in range(start, len(line)):
            character = line[index]
            if depth == 0 and character in ",)":
                if index > start:
                    types.append(line[start:index].split(": ", 1)[1])
                if character == ")":
                    return types, index + 1
                start = index + 1
            elif character in "(<":
                depth += 1
            elif character == ")" or (character == ">" and line[index - 1] != "-"):
                depth -= 1
        raise ValueError(f"not understood: {line}")

    def resolve(self, text):
        """Returns a type without type aliases."""
        while True:
            resolved = re.sub(r"\w+", lambda match: self.aliases.get(match[0], match[0]), text)
            if resolved == text:
                return text
            text = resolved


def differences(headers, stand_ins):
    """Yields the differences between the stand-ins and the headers."""
    for name, parameters, result, is_discardable in stand_ins.functions:
        if name in OVERLAY:
            if is_discardable:
                yield f"{name}: Swift's overlay declares it, so its result isn't discardable"
            continue
        if name in NOT_IN_HEADERS:
            continue
        if name not in headers.functions:
            yield f"{name}: not in the headers"
            continue
        expected = headers.function_type(name)
        actual = [stand_ins.resolve(parameter) for parameter in parameters], stand_ins.resolve(result)
        if actual != expected:
            yield f"{name}: {actual[0]} -> {actual[1]}, not {expected[0]} -> {expected[1]}"
    for name, alias in stand_ins.aliases.items():
        expected = headers.swift_type(name, is_pointee=True).removesuffix("?")
        # The alias of a function type isn't optional.
        expected = re.sub(r"^\((@convention.*)\)$", r"\1", expected)
        if stand_ins.resolve(alias) != expected:
            yield f"{name}: {alias}, not {expected}"
    for name, fields in stand_ins.structures.items():
        if name in ("idtype_t", "clockid_t"):
            if fields != [("rawValue", "UInt32")] or not headers.names[name].startswith("enum "):
                yield f"{name}: not an enumeration"
            continue
        tag = {"siginfo_t": "__siginfo"}.get(name, name)
        if name == "DIR":
            continue
        expected = [(item["name"], headers.swift_type(item["type"]["qualType"])) for item in headers.structures[tag]]
        expected = [field for field in expected if not re.search("spare|pad|reserved|unused", field[0])]
        actual = [(field, stand_ins.resolve(kind)) for field, kind in fields]
        if name in PARTIAL:
            expected = [field for field in expected if field[0] in dict(actual) and not field[1].startswith("(CChar")]
            actual = [field for field in actual if not field[1].startswith("(CChar")]
        if actual != expected:
            yield f"{name}: {actual}, not {expected}"
    yield from differing_constants(headers, stand_ins)


def differing_constants(headers, stand_ins):
    """Yields the constants whose types or values differ.

    A C file has an assertion for each constant. The `#line` before it makes an error name the constant.
    """
    constants = {name: constant for name, constant in stand_ins.constants.items() if name not in OVERLAY}
    lines = []
    for name, (kind, value) in constants.items():
        literal = re.sub(r"^\w+\((.*)\)$", r"\1", value).replace("0o", "0")
        # The constants of an enumeration have the type `int` in C, and the type of the enumeration in Swift.
        is_other = name.startswith(OVERLAY_PREFIXES) or kind in stand_ins.structures
        has_kind = "1" if is_other else f"_Generic({name}, int: 1, default: 0) == {int(kind == 'Int32')}"
        lines.append(f'#line 1 "{name}"\n_Static_assert({name} == {literal} && {has_kind}, "");\n')
    errors = headers.compile("".join(lines), "-ferror-limit=0").stderr
    for name, (kind, value) in constants.items():
        if re.search(f"^{name}:1:.* error:", errors, re.MULTILINE):
            yield f"{name}: not {kind} with the value {value}"


def packaged_headers():
    import ziglang

    return Path(ziglang.__file__).parent / "lib/libc/include/any-darwin-any"


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    headers, stand_ins = Headers(sys.argv[1] if len(sys.argv) == 2 else packaged_headers()), StandIns()
    found = list(differences(headers, stand_ins))
    for difference in found:
        print(difference)
    read = sum(map(len, (stand_ins.functions, stand_ins.aliases, stand_ins.structures, stand_ins.constants)))
    if read != stand_ins.count:
        found.append("a declaration was not understood")
    print(f"{read} of {stand_ins.count} declarations compared, {len(found)} differences")
    if found:
        sys.exit("error: The stand-ins differ from the headers.")


if __name__ == "__main__":
    main()
