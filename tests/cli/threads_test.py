# SPDX-License-Identifier: Apache-2.0
"""The number of threads: --threads, else OMP_NUM_THREADS, else all processors, never more than OMP_THREAD_LIMIT."""
import os
import re

from support import SweepTest

MANY_HEADS = ("-m", "sink", "-b", "16", "-q", "--rows", "trace", "--no-times")
SWEEP = '[[run]]\ntraces = "t.h5"\nmethods = ["sink", "random"]\n'


def environment(**variables):
    """This process's, without its own choice of threads and with these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    return {**kept, **variables}


class Threads(SweepTest):
    def team(self, *args, **variables):
        """Threads of the largest parallel region of a run, as OpenMP itself reports them; it need not report a single
        one."""
        shown = environment(OMP_DISPLAY_AFFINITY="TRUE", OMP_AFFINITY_FORMAT="team of %N", **variables)
        done = self.succeeds(*args, env=shown)
        # libgomp, LLVM
        return max(map(int, re.findall(r"^team of (\d+)$", done.stderr + done.stdout, re.MULTILINE)), default=1)

    def replay(self, *flags, **variables):
        return self.team("replay", self.trace, *MANY_HEADS, *flags, **variables)

    def test_the_environment_counts_and_the_flag_takes_precedence(self):
        for count in (1, 2, 3):
            self.assertEqual(self.replay(OMP_NUM_THREADS=str(count)), count)
            self.assertEqual(self.replay("--threads", count), count)
        self.assertEqual(self.replay("--threads", 3, OMP_NUM_THREADS="2"), 3)
        self.assertEqual(self.replay("--threads", 2, OMP_NUM_THREADS="3"), 2)
        self.assertEqual(self.replay("--threads", 0, OMP_NUM_THREADS="3"), 3)  # 0: the default

    def test_without_either_all_processors(self):
        heads = 4  # of the trace: there are no more work items
        self.assertEqual(self.replay(), min(len(os.sched_getaffinity(0)), heads))

    def test_the_limit_of_the_environment_holds(self):
        self.assertEqual(self.replay("--threads", 3, OMP_THREAD_LIMIT="2"), 2)

    def test_places_are_accepted(self):
        self.assertEqual(self.replay(OMP_NUM_THREADS="2", OMP_PLACES="threads", OMP_PROC_BIND="close"), 2)

    def test_sweeps_and_checks_run_on_the_same_threads(self):
        sweep = ("sweep", self.write(SWEEP), "-q")
        self.assertEqual(self.team(*sweep, OMP_NUM_THREADS="3"), 3)
        self.assertEqual(self.team(*sweep, "--threads", 2, OMP_NUM_THREADS="3"), 2)
        validate = ("validate", self.trace, "--claim", "subgen.size", "--seeds", "20", "-q")
        self.assertEqual(self.team(*validate, OMP_NUM_THREADS="3"), 3)
        self.assertEqual(self.team(*validate, "--threads", 2, OMP_NUM_THREADS="3"), 2)

    def test_an_estimate_counts_the_same_threads(self):
        for flags, variables, count in (((), {"OMP_NUM_THREADS": "3"}, 3),
                                        (("--threads", 2), {"OMP_NUM_THREADS": "3"}, 2)):
            done = self.succeeds("sweep", self.write(SWEEP), "--dry-run", *flags, env=environment(**variables))
            self.assertIn(f"on {count} threads", done.stdout)

