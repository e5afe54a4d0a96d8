# SPDX-License-Identifier: Apache-2.0
"""kvbench-dump-hf, run in the process of a test."""
import contextlib
import io

from kvbench import Trace
from kvbench.dump_hf import command as dump_hf
from support import PackageTest, replaced


class DumpTest(PackageTest):
    def ids(self, tokens, name="ids"):
        """A file of token ids."""
        return self.write(" ".join(map(str, tokens)), name)

    def dump_hf(self, *arguments):
        """Exit code and messages of a dump to t.h5."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = dump_hf.main(replaced(["-o", self.path("t.h5")], list(map(str, arguments))))
        return code, said.getvalue()

    def dumped(self, *arguments, code=0):
        """The messages of one that ends with this code."""
        got, said = self.dump_hf(*arguments)
        self.assertEqual(got, code, said)
        return said


class OpenedDumpTest(DumpTest):
    """Dumps whose trace is open until the next one replaces it."""
    opened = None

    def dump(self, model, *arguments, code=0):
        """The messages of a dump: the program does not replace a trace that this process has open."""
        self.close_trace()
        return self.dumped(*replaced(["--model", model], arguments), code=code)

    def trace(self):
        self.close_trace()
        self.opened = Trace(self.path("t.h5"))
        self.addCleanup(self.close_trace)
        return self.opened

    def close_trace(self):
        if self.opened:
            self.opened.close()
        self.opened = None
