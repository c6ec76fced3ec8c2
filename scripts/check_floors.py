#!/usr/bin/env python3
"""Fails when an #include points upward or sideways between the folders of the source tree.

scripts/check_floors.py [ROOT]     exit 0: all includes point downward; 1: one line per fault
"""

import re
import sys
from pathlib import Path

# Floors, lowest first. A folder may include itself, every folder of a lower floor, and include/weir.
FLOORS = [
    ["base"],
    ["core", "wire", "metrics"],
    ["policy", "identity", "store", "net"],
    ["redis"],
    ["shared_store"],
    ["decide"],
    ["answers"],
    ["doors", "gateway"],
    ["cli"],
]
FLOOR_OF = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}

# The public headers stay usable without the libraries that the implementation is built on.
PRIVATE_LIBRARIES = ("boost/", "openssl/", "yaml-cpp/", "fmt/", "spdlog/", "date/", "simdjson")

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TEST_FILE = re.compile(r"_(test|bench|fuzz)\.(cc|h)$")


def includes_of(path):
    """Yields (line number, quoted path or None, angled path or None)."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1), found.group(2)


def folder_of(include):
    return include.split("/", 1)[0] if "/" in include else None


def fault_in_source(folder, path, include):
    """What is wrong with `include` in a file of src/`folder`, or None."""
    target = folder_of(include)
    if target is None:
        if (path.parent / include).exists():
            return f'"{include}": write the path from src/, so that the folder shows'
        return None
    if target == "testing":
        if TEST_FILE.search(path.name):
            return None
        return f'"{include}": only tests, benchmarks and fuzzers may include testing/'
    if target not in FLOOR_OF or target == folder:
        return None  # Another library, include/weir, or the folder itself.
    here, there = FLOOR_OF[folder], FLOOR_OF[target]
    if there > here:
        return f'"{include}": upward: {folder} is on floor {here}, {target} on floor {there}'
    if there == here:
        return f'"{include}": sideways: {folder} and {target} are both on floor {here}'
    return None


def fault_in_public(include, angled):
    """What is wrong with an include in a file of include/weir, or None."""
    name = include or angled
    if include and folder_of(include) != "weir":
        return f'"{include}": a public header may include other weir/ headers only'
    if angled and name.startswith(PRIVATE_LIBRARIES):
        return f"<{angled}>: a public header needs nothing beyond the standard library"
    return None


def sources_below(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cc") and p.is_file())


def faults_of(root):
    faults = []
    source = root / "src"
    for path in sources_below(source) if source.is_dir() else []:
        place, folder = path.relative_to(root), path.relative_to(source).parts[0]
        if folder not in FLOOR_OF:
            faults.append(f"{place}:1: src/{folder} has no floor yet: give it one in {Path(__file__).name}")
            continue
        for number, quoted, _ in includes_of(path):
            fault = fault_in_source(folder, path, quoted) if quoted else None
            if fault:
                faults.append(f"{place}:{number}: {fault}")
    public = root / "include"
    for path in sources_below(public) if public.is_dir() else []:
        for number, quoted, angled in includes_of(path):
            fault = fault_in_public(quoted, angled)
            if fault:
                faults.append(f"{path.relative_to(root)}:{number}: {fault}")
    return faults


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    faults = faults_of(root)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(f"{len(faults)} include(s) do not point downward (docs/ARCHITECTURE.md, floors)", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
