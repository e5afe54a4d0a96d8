#!/usr/bin/env python3
"""Plants faults in a small tree and checks that arrows.py and self_contained.py report each of them, and nothing in a
tree without any."""
import pathlib
import tempfile
import unittest

import arrows
import self_contained


class Arrows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.tree = pathlib.Path(self.folder.name)
        self.write("kernels/include/kvbench/kernels/op.hpp", "")
        self.write("lib/kvbench/core/error.hpp", "#include <kvbench/kernels/op.hpp>\n")
        self.write("lib/kvbench/core/CMakeLists.txt", "kvbench_library(core\n  LINKS kvbench::kernels)\n")
        self.write("lib/kvbench/methods/contract/method.hpp", "#include <kvbench/core/error.hpp>\n")
        self.write("lib/kvbench/methods/stages/pool.hpp", "#include <kvbench/methods/contract/method.hpp>\n")
        self.write("lib/kvbench/methods/eviction/sink.cpp", "#include <kvbench/methods/stages/pool.hpp>\n")
        self.write("lib/kvbench/methods/CMakeLists.txt", "kvbench_library(methods LINKS kvbench::core)\n")

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
        self.write("lib/kvbench/methods/merging/merge.hpp", "")
        self.write("lib/kvbench/methods/eviction/bad.cpp", "#  include <kvbench/methods/merging/merge.hpp>\n")
        self.check("methods/eviction must not include kvbench/methods/merging/merge.hpp")

    def test_include_by_quotes(self):
        self.write("kernels/ref/bad.cpp", '#include "kvbench/core/error.hpp"\n')
        self.check("bad.cpp:1: kernels must not include kvbench/core/error.hpp")

    def test_missing_header(self):
        self.write("lib/kvbench/core/bad.cpp", "#include <kvbench/core/gone.hpp>\n")
        self.check("there is no file kvbench/core/gone.hpp")

    def test_unknown_folder(self):
        self.write("lib/kvbench/attic/bad.cpp", "")
        self.check("its folder is not in the table")

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
