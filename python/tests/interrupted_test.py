# SPDX-License-Identifier: Apache-2.0
"""Models after kvbench.compressed() and kvbench.evaluate() that end in any line (KVBENCH_EVERY_LINE=1; otherwise in
every seventh), and in threads beside each other: they answer as before."""
import contextlib
import copy
import linecache
import os
import re
import sys
import threading
import unittest

import environment

environment.use_torch("threadpoolctl")
from support import PACKAGE, kvbench  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
from kvbench.models import examination as _examination  # noqa: E402

CONTEXT, SCORE = 12, 4
IDS = hf_models.token_ids(CONTEXT + SCORE)
# All lines take half an hour: make nightly interrupts each, and other runs every seventh one.
STRIDE = 1 if os.environ.get("KVBENCH_EVERY_LINE") else 7
TRACED = (str(PACKAGE / "kvbench"), contextlib.__file__)
LOCKED = re.compile(r" *with (_attaching|_turn_of\(|_calls)")


def run_compressed(model):
    with kvbench.compressed(model, "h2o", "50%", context=CONTEXT):
        return model(torch.tensor([IDS])).logits


def run_evaluate(model):
    return kvbench.evaluate(model, [IDS], "h2o", "50%", context=CONTEXT, score=SCORE)


class Interrupter:
    """Raises KeyboardInterrupt before the n-th execution of one line, and counts how often each line is reached."""

    def __init__(self, place=None, nth=0):
        self.counts, self._place, self._left = {}, place, nth
        self._holding = set()  # (frame, line) of locks

    def __call__(self, frame, event, _):
        return self._line if frame.f_code.co_filename.startswith(TRACED) else None

    def _line(self, frame, event, _):
        if event == "line" and not self._unlocks(frame):
            place = os.path.basename(frame.f_code.co_filename), frame.f_lineno
            self.counts[place] = self.counts.get(place, 0) + 1
            if place == self._place:
                self._left -= 1
                if self._left == 0:
                    raise KeyboardInterrupt
        return self._line

    def _unlocks(self, frame):
        """Whether the line is a with statement of a lock that is reached once more, for its end. Python releases a lock
        in one step, between whose parts no signal is handled."""
        if not LOCKED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno)):
            return False
        self._holding ^= {(id(frame), frame.f_lineno)}
        return (id(frame), frame.f_lineno) not in self._holding


def traced(run, model, interrupter, fresh):
    """`fresh`: the model is examined once more."""
    if fresh:
        _examination._examined.clear()
    sys.settrace(interrupter)
    try:
        run(model)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)


class Interrupted(unittest.TestCase):
    def setUp(self):
        kind, arguments, _ = hf_models.MODELS["llama"]
        self.model = hf_models.build(kind, {**arguments, "num_hidden_layers": 1})
        self.before = self.state()

    def state(self):
        """What a call of the model gives, and what it leaves behind."""
        grad = torch.is_grad_enabled()
        with torch.no_grad():
            logits = self.model(torch.tensor([IDS])).logits.tolist()
        own = [name for module in self.model.modules() for name in ("expand_kv",) if name in vars(module)]
        hooks = sum(len(module._forward_pre_hooks) for module in self.model.modules())
        return grad, self.model.config._attn_implementation, own, hooks, logits

    def interrupt(self, run, fresh, least):
        counter = Interrupter()
        traced(run, self.model, counter, fresh)
        self.assertGreater(len(counter.counts), least)
        for place, count in sorted(counter.counts.items())[::STRIDE]:
            for nth in {1, count}:
                interrupter = Interrupter(place, nth)
                traced(run, self.model, interrupter, fresh)
                with self.subTest(run=run.__name__, place=place, nth=nth):
                    self.assertEqual(interrupter._left, 0)
                    self.assertEqual(self.state(), self.before)

    def test_ctrl_c_in_any_line_of_compressed(self):
        run_compressed(self.model)
        self.interrupt(run_compressed, False, 100)

    def test_ctrl_c_in_any_line_of_evaluate(self):
        run_evaluate(self.model)
        self.interrupt(run_evaluate, False, 200)

    def test_ctrl_c_in_any_line_of_the_examination(self):
        self.interrupt(lambda model: _examination.examination(model), True, 100)

    def test_the_model_runs_again_after_an_exception(self):
        wanted = run_compressed(self.model)
        self.assertFalse(torch.equal(wanted, self.model(torch.tensor([IDS])).logits))
        with self.assertRaises(ZeroDivisionError), kvbench.compressed(self.model, "h2o", "50%", context=CONTEXT):
            raise ZeroDivisionError
        self.assertEqual(self.state(), self.before)
        self.assertTrue(torch.equal(run_compressed(self.model), wanted))


class Threads(unittest.TestCase):
    def setUp(self):
        self.model = hf_models.build(*hf_models.MODELS["llama"][:2])

    def together(self, *runs):
        """What each of these functions returned, or raised, in a thread of its own."""
        results, begin = [None] * len(runs), threading.Barrier(len(runs))

        def work(number, run):
            begin.wait()
            try:
                results[number] = run()
            except Exception as failure:
                results[number] = failure
        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(runs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def rows(self, method):
        return [{key: value for key, value in row.items() if key != "pass_s"}
                for row in kvbench.evaluate(self.model, [IDS], method, "50%", context=CONTEXT, score=SCORE)]

    def logits(self):
        with torch.no_grad():
            return self.model(torch.tensor([IDS])).logits

    def test_evaluate_of_one_model(self):
        methods, before = ("h2o", "snapkv", "sink"), self.logits()
        alone = [self.rows(method) for method in methods]
        for _ in range(5):
            self.assertEqual(self.together(*(lambda name=method: self.rows(name) for method in methods)), alone)
            self.assertTrue(torch.equal(self.logits(), before))

    def test_compressed_beside_evaluate(self):
        """A with statement that begins meanwhile waits; one that has begun is a reason to refuse."""
        before, wanted, alone = self.logits(), run_compressed(self.model), self.rows("h2o")
        for _ in range(5):
            rows, logits = self.together(lambda: self.rows("h2o"), lambda: run_compressed(self.model))
            if isinstance(rows, kvbench.Error):
                self.assertIn("is inside a with statement", str(rows))
            else:
                self.assertEqual(rows, alone)
            self.assertTrue(torch.equal(logits, wanted))
            self.assertTrue(torch.equal(self.logits(), before))

    def test_a_call_that_has_begun(self):
        with contextlib.ExitStack() as stack, self.assertRaisesRegex(kvbench.Error, "a call that had begun when"):
            begin = iter([lambda: stack.enter_context(kvbench.compressed(self.model, "h2o", "50%", context=CONTEXT))])
            self.model.model.layers[0].register_forward_pre_hook(lambda *_: next(begin, lambda: None)() and None)
            self.logits()

    def test_evaluate_inside_compressed(self):
        before = self.logits()
        with kvbench.compressed(self.model, "h2o", "50%", context=CONTEXT):
            with self.assertRaisesRegex(kvbench.Error, "is inside a with statement of kvbench.compressed"):
                self.rows("h2o")
            (other,) = self.together(lambda: self.rows("h2o"))
            self.assertRegex(str(other), "is inside a with statement of kvbench.compressed")
            self.logits()
        copied, self.model = self.model, copy.deepcopy(self.model)
        with kvbench.compressed(copied, "h2o", "50%", context=CONTEXT):
            self.assertEqual(len(self.rows("h2o")), 2)
            copied(torch.tensor([IDS]))
        self.assertTrue(torch.equal(self.logits(), before))
