#!/usr/bin/env python3
"""check_floors.py goes red on made-up violations and stays green beside them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parent / "check_floors.py"


class CheckFloors(unittest.TestCase):
    def check(self, files):
        """Writes the files into a fresh tree and runs the check: (exit code, standard error)."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            run = subprocess.run([sys.executable, str(CHECK), root], capture_output=True, text=True, check=False)
            return run.returncode, run.stderr

    def assert_red(self, files, *words):
        code, errors = self.check(files)
        self.assertEqual(code, 1, errors)
        for word in words:
            self.assertIn(word, errors)

    def test_downward_includes_pass(self):
        code, errors = self.check(
            {
                "src/base/clock.h": '#include "weir/result.h"\n#include <chrono>\n',
                "src/core/gcra.h": '#include "base/clock.h"\n#include "core/rate.h"\n',
                "src/cli/main.cc": '#include "gateway/proxy.h"\n#include "core/gcra.h"\n',
                "src/redis/node.cc": '#include "net/stream.h"\n#include "wire/resp/value.h"\n',
                "src/shared_store/shared_store.cc": '#include "redis/client.h"\n#include "store/store.h"\n',
                "src/core/gcra_test.cc": '#include "testing/clock.h"\n#include "gtest/gtest.h"\n',
                "include/weir/limit.h": '#include <cstdint>\n#include "weir/result.h"\n',
                "testing/clock.h": '#include "cli/main.h"\n',
            }
        )
        self.assertEqual((code, errors), (0, ""))

    def test_upward_include_is_named_with_its_place(self):
        self.assert_red(
            {"src/core/gcra.cc": '#include <chrono>\n#include "store/store.h"\n'},
            "src/core/gcra.cc:2:",
            "upward",
            "floor 1",
            "floor 2",
        )

    def test_the_redis_client_knows_nothing_of_limits_above_it(self):
        upward = '#include "shared_store/shared_store.h"\n'
        self.assert_red({"src/redis/node.cc": upward}, "upward", "floor 3", "floor 4")
        self.assert_red({"src/net/stream.cc": '#include "redis/client.h"\n'}, "upward", "floor 2", "floor 3")

    def test_sideways_include_fails(self):
        self.assert_red({"src/store/memory/table.cc": '#include "policy/policy.h"\n'}, "sideways")

    def test_indented_and_spaced_include_is_seen(self):
        self.assert_red({"src/base/clock.cc": '  #  include "net/socket.h"\n'}, "src/base/clock.cc:1:", "upward")

    def test_product_code_does_not_include_testing(self):
        self.assert_red({"src/core/gcra.cc": '#include "testing/clock.h"\n'}, "testing/")

    def test_a_test_may_not_include_upward_either(self):
        self.assert_red({"src/core/gcra_test.cc": '#include "decide/decide.h"\n'}, "upward")

    def test_bare_include_of_a_neighbour_fails(self):
        self.assert_red({"src/core/a.h": "", "src/core/a.cc": '#include "a.h"\n'}, "write the path from src/")

    def test_public_header_includes_nothing_of_src_nor_boost(self):
        self.assert_red({"include/weir/limiter.h": '#include "core/gcra.h"\n'}, "public header")
        self.assert_red({"include/weir/limiter.h": "#include <boost/json.hpp>\n"}, "public header")

    def test_a_folder_without_a_floor_fails(self):
        self.assert_red({"src/util/strings.h": ""}, "src/util has no floor")


if __name__ == "__main__":
    unittest.main()
