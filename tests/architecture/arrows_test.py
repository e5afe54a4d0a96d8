#!/usr/bin/env python3
"""Plants faults in a small tree and checks that arrows.py and self_contained.py report each of them, and
nothing in a tree without any."""
import pathlib
import tempfile
import unittest

import arrows
import self_contained


ROOMS = """
[core]
holds = "errors"
includes = ["kernels"]
["methods/contract"]
includes = ["core"]
["methods/stages"]
includes = ["methods/contract"]
["methods/eviction"]
includes = ["methods/stages"]
["methods/merging"]
includes = ["methods/stages"]
[methods]
includes = ["methods/*"]
tests = ["unit_methods"]
[kernels]
includes = []
["apps/common"]
includes = ["core"]
["apps/dump"]
includes = ["apps/common"]
["tests/support"]
includes = ["methods"]
["tests/unit"]
includes = []
["tests/property"]
includes = ["methods"]
[docs]
holds = "pages"
[tests]
tests = ["arrows"]
"""


class Arrows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.tree = pathlib.Path(self.folder.name)
        self.write(arrows.ROOMS, ROOMS)
        self.write("kernels/include/kvbench/kernels/op.hpp", "")
        self.write("kernels/ref/op.cpp", '#include "../private.hpp"\n')
        self.write("lib/kvbench/core/error.hpp", "#include <kvbench/kernels/op.hpp>\n")
        self.write("lib/kvbench/core/CMakeLists.txt", "kvbench_library(core\n  LINKS kvbench::kernels)\n")
        self.write("lib/kvbench/methods/contract/method.hpp", "#include <kvbench/core/error.hpp>\n")
        self.write("lib/kvbench/methods/stages/pool.hpp", "#include <kvbench/methods/contract/method.hpp>\n")
        self.write("lib/kvbench/methods/eviction/sink.cpp", "#include <kvbench/methods/stages/pool.hpp>\n")
        self.write("lib/kvbench/methods/merging/merge.hpp", "")
        self.write("lib/kvbench/methods/registry.cpp", "#include <kvbench/methods/merging/merge.hpp>\n")
        self.write("lib/kvbench/methods/CMakeLists.txt", "kvbench_library(methods LINKS kvbench::core)\n")
        self.write("apps/common/flags.hpp", "#include <kvbench/core/error.hpp>\n")
        self.write("apps/dump/main.cpp", "#include <apps/common/flags.hpp>\n#include <vector>\n")
        self.write("tests/support/small.hpp", "#include <kvbench/methods/contract/method.hpp>\n")
        self.write("tests/property/laws.cpp", "#include <support/small.hpp>\n#include \"local.hpp\"\n")
        self.write("tests/property/local.hpp", "#include <kvbench/methods/stages/pool.hpp>\n")
        self.write("tests/unit/core/error.cpp", "#include <kvbench/core/error.hpp>\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check(self, fault):
        self.assertTrue(any(fault in found for found in arrows.faults(self.tree)), arrows.faults(self.tree))

    def test_sound_tree(self):
        self.assertEqual(arrows.faults(self.tree), [])

    def test_include_upwards(self):
        self.write("lib/kvbench/core/bad.cpp", "#include <kvbench/methods/contract/method.hpp>\n")
        self.check("bad.cpp:1: core must not include kvbench/methods/contract/method.hpp")

    def test_include_upwards_inside_a_library(self):
        self.write("lib/kvbench/methods/contract/bad.hpp", "\n#include <kvbench/methods/stages/pool.hpp>\n")
        self.check("bad.hpp:2: methods/contract must not include")

    def test_include_sideways(self):
        self.write("lib/kvbench/methods/eviction/bad.cpp", "#  include <kvbench/methods/merging/merge.hpp>\n")
        self.check("methods/eviction must not include kvbench/methods/merging/merge.hpp")

    def test_include_by_quotes(self):
        self.write("kernels/ref/bad.cpp", '#include "kvbench/core/error.hpp"\n')
        self.check("bad.cpp:1: kernels must not include kvbench/core/error.hpp")

    def test_paired_test_elsewhere(self):
        self.write("lib/kvbench/methods/registry.cpp", "// place_test() is named\nauto t = place_test(x, 1, true);\n")
        self.check("registry.cpp:2: paired tests are those of evidence")

    def test_missing_header(self):
        self.write("lib/kvbench/core/bad.cpp", "#include <kvbench/core/gone.hpp>\n")
        self.check("there is no file kvbench/core/gone.hpp")

    def test_unknown_folder(self):
        self.write("lib/kvbench/attic/bad.cpp", "")
        self.check("lib/kvbench/attic/bad.cpp: its folder is no room")

    def test_room_without_a_source(self):
        self.write(arrows.ROOMS, ROOMS + '["apps/gone"]\nincludes = ["core"]\n')
        self.check("apps/gone holds no source")

    def test_room_that_names_no_room(self):
        self.write(arrows.ROOMS, ROOMS.replace('common"]\nincludes = ["core"]', 'common"]\nincludes = ["cores"]'))
        self.check("apps/common names cores, which is no room")

    def test_circle(self):
        self.write(arrows.ROOMS, ROOMS.replace('["kernels"]', '["kernels", "methods/merging"]'))
        self.check("core and methods/merging may include each other")

    def test_no_rooms(self):
        self.write(arrows.ROOMS, "")
        self.check("its folder is no room")

    def test_program_includes_a_library_of_others(self):
        self.write("apps/dump/bad.cpp", "#include <kvbench/methods/stages/pool.hpp>\n")
        self.check("apps/dump/bad.cpp:1: apps/dump must not include kvbench/methods/stages/pool.hpp")

    def test_programs_share_through_common_only(self):
        self.write("apps/eval/eval.hpp", "")
        self.write(arrows.ROOMS, ROOMS + '["apps/eval"]\nincludes = ["core"]\n')
        self.write("apps/dump/bad.cpp", "#include <apps/eval/eval.hpp>\n")
        self.check("apps/dump must not include apps/eval/eval.hpp")

    def test_missing_header_of_a_program(self):
        self.write("apps/dump/bad.cpp", "#include <apps/common/gone.hpp>\n")
        self.check("apps/dump/bad.cpp:1: there is no file apps/common/gone.hpp")

    def test_path_upwards(self):
        self.write("apps/dump/bad.cpp", '#include "../common/flags.hpp"\n')
        self.check("apps/dump/bad.cpp:1: includes by ../")

    def test_unit_test_of_another_library(self):
        self.write("tests/unit/core/bad.cpp", "#include <kvbench/methods/contract/method.hpp>\n")
        self.check("tests/unit/core/bad.cpp:1: core must not include kvbench/methods/contract/method.hpp")

    def test_unit_test_through_a_shared_header(self):
        self.write("tests/unit/core/bad.cpp", "#include <support/small.hpp>\n")
        self.check("tests/support/small.hpp:1: core must not include kvbench/methods/contract/method.hpp "
                   "(tests/unit/core/bad.cpp)")

    def test_link_upwards(self):
        self.write("lib/kvbench/core/CMakeLists.txt", "kvbench_library(core LINKS kvbench::kernels kvbench::methods)\n")
        self.check("core must not link methods")

    def test_missing_link(self):
        self.write("lib/kvbench/methods/CMakeLists.txt", "kvbench_library(methods LINKS Eigen3::Eigen)\n")
        self.check("methods must link core")

    def test_missing_standard_header(self):
        self.write("lib/kvbench/core/list.hpp",
                   "#include <kvbench/core/error.hpp>\nstd::vector<int> list();  // std::optional\n")
        self.write("lib/kvbench/core/user.hpp",
                   "#include <vector>\n#include <kvbench/core/list.hpp>\nstd::size_t n();\n")
        files = arrows.headers(self.tree)
        self.assertEqual(list(self_contained.missing_standard("kvbench/core/user.hpp", files)), [])
        found, = self_contained.missing_standard("kvbench/core/list.hpp", files)
        self.assertIn("<vector>", found)


if __name__ == "__main__":
    unittest.main()
