#!/usr/bin/env python3
"""Prints "PASSED FAILED" for a JUnit file, as ctest and pytest write it. Skipped tests count as neither.

scripts/count_results.py FILE      a missing or unreadable file counts as one failure
"""

import sys
from xml.etree import ElementTree


def count(path):
    passed = failed = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        children = {child.tag for child in case}
        if children & {"failure", "error"} or case.get("status") == "fail":
            failed += 1
        elif "skipped" in children or case.get("status") in ("notrun", "disabled"):
            print(f"skipped: {case.get('name')}", file=sys.stderr)
        else:
            passed += 1
    return passed, failed


if __name__ == "__main__":
    try:
        print(*count(sys.argv[1]))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no results: {error}", file=sys.stderr)
        print(0, 1)
