"""Every known kind of fault has a test that bears its id: `Case4_...` in C++, `test_case4_...` in Python.

`python tests/test_case_ids.py` lists which ids have tests, and where.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The faults that concern what is built: the library, HTTP, the gateway, the RESP door, the configuration and the
# shared store.
WANTED = """
1 3 4 5 7 8 9 10 11 14 15 16 17 18 19 20 21 22 23 25 26 27 28 29 30 31 32 34 35 37 38 40 42 44 45 46 47 48 49 51 52 53
54 55 56 57 58 59 61 62 63 65 66 67 68 70 71 72 74 75 76 77 78 79 80 81 82 83c 83f 83g 84b 84d 84e 84f 85 86
87
""".split()
# Those of the shared store: each is tested against a Redis or Valkey server.
WANTED_OVER_A_STORE = "1 5 10 21 23 25 26 28 32 35 42 51 70 74 75 76 77 78 79 80 81 82 84b 85".split()
# Those of CL.THROTTLE and the other commands of the RESP door.
WANTED_OVER_RESP = "7 8 9 10 11 15 16 18 20 29 71 75 84f".split()
AT_THE_RESP_DOOR = re.compile(r"src/doors/resp/\w+_test\.cc|tests/test_resp_door\.py")
# What runs against a server: store_contract.h by script_contract_test.cc.
AGAINST_A_SERVER = re.compile(
    r"tests/test_(shared_store|store_\w+)\.py|src/redis/client_\w+_test\.cc|src/store/redis/script_\w+_test\.cc"
    r"|testing/store_contract\.h"
)


def files_by_case():
    found = defaultdict(set)
    sources = [*ROOT.glob("src/**/*_test.cc"), *ROOT.glob("testing/**/*.cc"), *ROOT.glob("testing/**/*.h")]
    for path in [*sources, *ROOT.glob("tests/test_*.py")]:
        text = path.read_text()
        names = re.findall(r"(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP\w*)\(\s*\w+\s*,\s*(\w+)", text)
        names += re.findall(r"^\s*def (test_\w+)", text, re.M)
        for name in names:
            for case in re.findall(r"[Cc]ases?_?(\d+[a-i]?)(?![0-9a-z])", name):
                found[case].add(str(path.relative_to(ROOT)))
    return found


def test_every_case_has_a_test():
    missing = [case for case in WANTED if case not in files_by_case()]
    assert missing == []


def test_every_case_of_the_shared_store_has_a_test_against_a_server():
    found = files_by_case()
    missing = [case for case in WANTED_OVER_A_STORE if not any(map(AGAINST_A_SERVER.fullmatch, found[case]))]
    assert missing == []


def test_every_case_of_the_resp_door_has_a_test_there():
    found = files_by_case()
    missing = [case for case in WANTED_OVER_RESP if not any(map(AT_THE_RESP_DOOR.fullmatch, found[case]))]
    assert missing == []


if __name__ == "__main__":
    found = files_by_case()
    for case in sorted({*WANTED, *found}, key=lambda c: (int(re.match(r"\d+", c)[0]), c)):
        print(f"{case:>4}  {', '.join(sorted(found.get(case, []))) or '-'}")
    sys.exit(any(case not in found for case in WANTED))
