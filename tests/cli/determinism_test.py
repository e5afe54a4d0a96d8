# SPDX-License-Identifier: Apache-2.0
"""The CSV without times is the same to the byte for any number of threads, and for repeated runs."""
import os
import unittest

from support import SAMPLE, CliTest, rows


class Determinism(CliTest):
    def same(self, trace, *flags, counts=(1, 2, 3, 5, 1)):
        outputs = set()
        for threads in counts:
            done = self.succeeds("replay", trace, "--no-times", "--threads", threads, *flags)
            outputs.add(done.stdout)
        self.assertEqual(len(outputs), 1)
        return rows(outputs.pop())

    def test_synthetic(self):
        for protocol in ("prefill", "decode"):
            table = self.same(self.trace, "-m", "all", "-b", "10%,50%", "--protocol", protocol, "--rows", "head")
            self.assertGreater(len(table), 100)

    @unittest.skipUnless(os.path.exists(SAMPLE), "no bundled trace")
    def test_real_trace(self):
        self.same(SAMPLE, "-m", "all", "-b", "5%", "--layers", "14", "--heads", "0,1", "--seeds", "1", "--protocol",
                  "prefill", counts=(1, 2))

