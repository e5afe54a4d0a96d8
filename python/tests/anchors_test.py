# SPDX-License-Identifier: Apache-2.0
"""Anchors that kvbench-dump-hf measures: the damage that evaluate() and compressed() find, and the predictions of a
replay."""
import csv
import os
import signal

import environment

environment.use_torch("threadpoolctl")
from support import kvbench, replaced, run  # noqa: E402
import h5py  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
from dumps import DumpTest  # noqa: E402
from kvbench.dump_hf import anchors as _anchors  # noqa: E402
from kvbench.program import commands as _commands  # noqa: E402
from kvbench.models.continued import in_single_precision  # noqa: E402

CONTEXT, SCORED = 300, 9  # waiting tokens of KIVI are 128, so that shorter contexts would have no damage
N = CONTEXT + SCORED


def token_ids(seed=0, count=N):
    return hf_models.token_ids(count, seed)


def divergences(full, other):
    """KL(full || other) at each token, from logits in numpy."""
    p, q = (torch.as_tensor(logits).double().log_softmax(-1) for logits in (full, other))
    return (p.exp() * (p - q)).sum(-1).numpy()


class AnchorsTest(DumpTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)

    def dump(self, model, *arguments, prompts=1, code=0):
        files = [self.ids(token_ids(seed), f"ids{seed}") for seed in range(prompts)]
        own = ["--model", model, "--ids", *files, "--prompt-tokens", CONTEXT, "--probes", 4, "--anchors", "--force"]
        return self.dumped(*replaced(own, arguments), code=code)

    def anchors(self, prompt="0"):
        """The anchors of a prompt by (method, budget, layer), and the order of channels of the trace."""
        with kvbench.Trace(self.path("t.h5")) as trace:
            found = trace.prompts[prompt].anchors
            return {(one.method, one.budget, one.layer): one for one in found.list}, trace.rope_layout

    def saved(self, name, change=lambda model: None):
        """A small model with heads of 32 channels, which all formats can round, in a folder."""
        kind, arguments, _ = hf_models.MODELS[name]
        model = hf_models.build(kind, {**arguments, "head_dim": 32})
        change(model)
        model.save_pretrained(self.path(name))
        return model


class Measured(AnchorsTest):
    def compressed_logits(self, model, ids, method, budget, layers, layout):
        """Logits at the scored tokens with the full cache and inside compressed(), by calls of the model."""
        given = [torch.tensor([part]) for part in (ids[:CONTEXT], ids[CONTEXT:])]
        found = []
        for one, at, only in (("exact", "100%", None), (method, budget, layers)):
            with kvbench.compressed(model, one, at, context=CONTEXT, decode=len(ids) - CONTEXT, layers=only,
                                    rope_layout=layout):
                cache = model(given[0], use_cache=True)
                name = "cache" if "cache" in cache else "past_key_values"
                found.append(model(given[1], **{name: cache[name]}).logits[0])
        return found

    def check(self, name, layers, rope_layout=(), **changes):
        """The anchors of a model are what evaluate() and compressed() find, and what a replay predicts."""
        model = self.saved(name, **changes)
        self.dump(self.path(name), *rope_layout, prompts=2)
        for seed, (found, layout) in enumerate([self.anchors("0"), self.anchors("1")]):
            expected = {(*one, None) for one in (*_anchors.STANDARD, _anchors.PLAIN)}
            expected |= {(*_anchors.PLAIN, layer) for layer in layers}
            self.assertEqual(set(found), expected)
            self.check_measured(model, token_ids(seed), found, layout)
            self.check_predicted(str(seed), found)

    def check_measured(self, model, ids, found, layout):
        rows = {(row["method"], row["params"] or "", row["budget"]): row for budget in {key[1] for key in found}
                for row in kvbench.evaluate(
                    model, {"d": ids}, list({method for method, at, _ in found if at == budget}), budget,
                    context=CONTEXT, score=SCORED, rope_layout=layout) if row["document"] == "d"}
        for (method, budget, layer), anchor in found.items():
            with self.subTest(method=method, budget=budget, layer=layer):
                logits = self.compressed_logits(model, ids, method, budget, None if layer is None else [layer], layout)
                by_token = divergences(*logits)
                # Another order of the sums in float32 moves logits by some 1e-6.
                self.assertAlmostEqual(anchor.kl, by_token.mean(), delta=2e-4 * anchor.kl + 2e-8)
                self.assertGreater(anchor.kl, 1e-7)  # a fault would be seen
                if layer is None:  # evaluate() leaves out the last scored token, whose next one is not given
                    [choice] = _commands._core().choices(method)
                    row = rows[choice.name, choice.params, budget]
                    self.assertAlmostEqual(anchor.kl * SCORED - by_token[-1], row["kl_mean"] * (SCORED - 1),
                                           delta=2e-4 * anchor.kl * SCORED + 2e-7)

    def check_predicted(self, prompt, found):
        """They are those of a replay that does not see the anchors, which would correct them."""
        with h5py.File(self.path("t.h5"), "r+") as file:
            for group in file["prompts"].values():
                group.pop("anchors", None)
        rows = {}
        for budget in {key[1] for key in found}:
            methods = {method for method, at, _ in found if at == budget}
            run("replay", self.path("t.h5"), *(f"-m={method}" for method in methods), "-b", budget, "-o",
                self.path("r.csv"), "--no-times", "--rows", "layer")
            with open(self.path("r.csv"), newline="") as file:
                rows |= {(row["method"], row["params"], budget, row["prompt"], row["layer"]): row
                         for row in csv.DictReader(file)}
        for (method, budget, layer), anchor in found.items():
            [choice] = _commands._core().choices(method)
            row = rows[choice.name, choice.params, budget, prompt, "all" if layer is None else str(layer)]
            if row["kl_about"].startswith("outside"):
                self.assertIsNone(anchor.predicted)
                continue
            self.assertEqual(anchor.predicted, float(row["kl_predicted"]))
            self.assertGreater(anchor.predicted, 0)

    def test_plans_are_corrected_as_rows_are(self):
        """An equal budget has the predicted KL that a row of the same configuration has, with the same anchors."""
        self.saved("llama")
        self.dump(self.path("llama"), prompts=2)
        at = ["-b", "100%mem", "-o"]
        run("replay", self.path("t.h5"), "-m", "q8_0", *at, self.path("r.csv"), "--no-times", "--rows", "trace")
        run("allocate", self.path("t.h5"), "--menu", "q8_0", *at, self.path("p.toml"), "--curve", self.path("c.csv"))
        with open(self.path("r.csv"), newline="") as rows, open(self.path("c.csv"), newline="") as curve:
            row = next(row for row in csv.DictReader(rows) if row["prompt"] == "all")
            plan = next(row for row in csv.DictReader(curve) if row["budget"] == "100%mem")
        self.assertRegex(row["kl_about"], "all layers; times [0-9.]+ by [0-9]+ anchors")
        self.assertAlmostEqual(float(plan["equal_damage_fitted"]) / float(row["kl_predicted"]), 1, delta=1e-5)

    def test_a_model_whose_query_heads_share_kv_heads(self):
        self.check("llama", [0, 1])

    def test_another_order_of_channels(self):
        self.check("llama", [0, 1], ("--rope-layout", "interleaved"))

    def test_a_model_with_windows(self):
        self.check("gemma3", [1])

    def test_the_anchors_of_a_layer_differ_from_those_of_another(self):
        """Where the values of layer 0 are all equal, no rounding and no dropped token of it matters."""
        def silence(model):
            model.model.layers[0].self_attn.v_proj.weight.zero_()
            model.model.layers[0].self_attn.v_proj.bias.fill_(1)
        self.saved("llama", silence)
        self.dump(self.path("llama"))
        found, _ = self.anchors()
        self.assertLess(found[(*_anchors.PLAIN, 0)].kl, 1e-3 * found[(*_anchors.PLAIN, 1)].kl)

    def test_weights_of_half_types_are_held_in_float32(self):
        """As for probes: otherwise the rounding of activations would be larger than what is measured."""
        self.saved("llama").to(torch.bfloat16).save_pretrained(self.path("llama"))
        model = kvbench.load_model(self.path("llama"), torch.bfloat16)
        self.dump(self.path("llama"), "--weights", "bf16")
        found, layout = self.anchors()
        with in_single_precision(model):
            self.check_measured(model, token_ids(), found, layout)

    def test_recorded_layers_do_not_change_what_is_measured(self):
        self.saved("llama")
        self.dump(self.path("llama"))
        whole, _ = self.anchors()
        self.dump(self.path("llama"), "--layers", 1)
        part, _ = self.anchors()
        self.assertEqual({key: one.kl for key, one in whole.items()}, {key: one.kl for key, one in part.items()})
        self.assertIsNone(part[(*_anchors.PLAIN, 0)].predicted)  # it is not in the trace
        self.assertEqual(part[(*_anchors.PLAIN, 1)].predicted, whole[(*_anchors.PLAIN, 1)].predicted)
        self.assertIsNone(part["h2o", "25%mem", None].predicted)  # of the replayed layer alone

    def test_decoded_tokens(self):
        """They are the scored tokens; their number and ids are those of the trace."""
        model = self.saved("llama", lambda model: setattr(model.generation_config, "eos_token_id", None))
        self.dump(self.path("llama"), "--decode", 6, "--ctx", CONTEXT, "--prompt-tokens", CONTEXT)
        with kvbench.Trace(self.path("t.h5")) as trace:
            ids = trace.prompts["0"].tokens.tolist()
        self.assertEqual(len(ids), CONTEXT + 6)
        found, layout = self.anchors()
        logits = self.compressed_logits(model, ids, "h2o", "25%mem", None, layout)
        self.assertAlmostEqual(found["h2o", "25%mem", None].kl, divergences(*logits).mean(), delta=1e-6)

    def test_heads_that_llama_cpp_rotates(self):
        kind, arguments, _ = hf_models.MODELS["llama"]
        hf_models.build(kind, {**arguments, "head_dim": 64}).save_pretrained(self.path("m"))
        self.dump(self.path("m"))
        found, _ = self.anchors()
        self.assertIn((*_anchors.ROTATED, 1), found)
        self.assertNotIn((*_anchors.PLAIN, None), found)

    def test_one_scored_token(self):
        model = self.saved("llama")
        self.dump(self.path("llama"), "--prompt-tokens", N - 1)
        found, layout = self.anchors()
        self.assertEqual({(*one, None) for one in _anchors.STANDARD} - set(found), set())

    def test_equal_dumps_are_equal(self):
        self.saved("llama")
        os.environ["SOURCE_DATE_EPOCH"] = "86400"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        for flags in ((), ("--compress",)):
            found = []
            for _ in range(2):
                self.dump(self.path("llama"), *flags)
                with open(self.path("t.h5"), "rb") as file:
                    found.append(file.read())
            self.assertEqual(*found)


class Said(AnchorsTest):
    def test_costs_and_info(self):
        self.saved("llama")
        said = self.dump(self.path("llama"), prompts=2)
        self.assertRegex(said, "4 probes of 9 scored tokens: .* Up to 19 anchors: about [0-9]+ s, and a replay")
        self.assertIn("  anchors      38 in 2 of 2 prompts, measured by kvbench "
                      f"{_commands._core().version}", run("info", self.path("t.h5")))
        self.dumped("--model", self.path("llama"), "--ids", self.path("ids0"), "--probes", 2, "--force")
        self.assertNotIn("anchor", run("info", self.path("t.h5")))

    def test_what_has_no_cache_is_left_out_and_said(self):
        """KIVI keeps the last 128 tokens exactly, and heads of 16 channels do not fill a block of ggml."""
        hf_models.save(self.path("m"), "llama")
        said = self.dump(self.path("m"), prompts=2)
        found, _ = self.anchors()
        missing = {one for one in _anchors.STANDARD if (*one, None) not in found}
        self.assertIn(("q8_0", "100%mem"), missing)
        for method, budget in missing:
            self.assertEqual(said.count(f"no anchor {method} at {budget}: "), 1)
        self.assertNotIn((*_anchors.PLAIN, 0), found)

    def test_a_context_that_is_too_short_for_all(self):
        hf_models.save(self.path("m"), "llama")
        self.dump(self.path("m"), "--ids", self.ids(token_ids(0, 5), "short"), "--prompt-tokens", 2, "--force")
        with kvbench.Trace(self.path("t.h5")) as trace:
            for one in getattr(trace.prompts["0"].anchors, "list", []):
                self.assertGreaterEqual(one.kl, 0)


class Refused(AnchorsTest):
    def refused(self, *arguments, words, model="llama"):
        said = self.dump(self.path(model), *arguments, code=2)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("t.h5")])
        return said

    def test_without_probes(self):
        code, said = self.dump_hf("--model", "none", "--ids", self.ids(token_ids()), "--anchors")
        self.assertEqual(code, 2)
        self.assertIn("--anchors needs --probes", said)

    def test_without_the_program(self):
        """Said before the model is loaded."""
        def missing():
            raise kvbench.Error("kvbench was installed without its program")
        self.addCleanup(setattr, _anchors, "_core", _anchors._core)
        _anchors._core = missing
        self.refused(words=["--anchors: kvbench was installed without its program"], model="no-model")

    def test_models_that_cannot_be_compressed(self):
        for name in sorted({"deepseek_v3", "phi3"} & set(hf_models.RECORDED)):
            with self.subTest(name):
                hf_models.save(self.path(name), name)
                self.refused(model=name, words=["--anchors: ", {"deepseek_v3": "latent attention",
                                                                "phi3": "sliding window"}[name], "leave out --anchors"])

    def test_windows_that_no_prompt_reaches(self):
        """A replay would compress these layers, and compressed() does not."""
        kind, arguments, _ = hf_models.MODELS["qwen2"]
        hf_models.build(kind, {**arguments, "sliding_window": 400}).save_pretrained(self.path("qwen2"))
        self.refused(model="qwen2", words=["--anchors: layer 1 has a sliding window that no prompt reaches"])

    def test_layers_in_which_no_method_runs(self):
        model = self.saved("gemma3")  # whose layer 0 has a window
        for layers, words in (([], "names no layer"), ([1, 0], "do not run in layer 0"), (7, "do not run in layer 7"),
                              ([True], "'layers'.*integer"), ("1", "'layers'.*integer")):
            with self.subTest(layers=layers), self.refuses(words), kvbench.compressed(model, layers=layers):
                pass
        model = self.saved("llama")
        with self.refuses("compares the tokens of all layers"), \
                kvbench.compressed(model, "damage-votes[scope=model]", layers=[1]):
            pass
        with kvbench.compressed(model, "h2o", layers=1, context=CONTEXT) as run, torch.no_grad():
            model(torch.tensor([token_ids()]), use_cache=True)
            self.assertEqual(run.layers, [1])

    def test_a_replay_that_fails_leaves_no_file(self):
        self.saved("llama")
        self.addCleanup(setattr, _anchors, "replayed", _anchors.replayed)

        def full(*_, **__):
            raise OSError("the disk is full")
        _anchors.replayed = full
        self.assertIn("the disk is full", self.dump(self.path("llama"), code=3))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("t.h5")])

    def test_an_interruption_leaves_no_file(self):
        """While anchors are measured, and while the trace is replayed."""
        self.saved("llama")
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore behind &

        def interrupt(*given):
            os.kill(os.getpid(), signal.SIGINT)
            return before(*given)
        for module, name in ((_anchors.Passes, "compressed"), (_anchors, "predictions")):
            with self.subTest(name):
                before = getattr(module, name)
                self.addCleanup(setattr, module, name, before)
                setattr(module, name, interrupt)
                self.assertIn("interrupted", self.dump(self.path("llama"), code=130))
                setattr(module, name, before)
                self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("t.h5")])
                self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
