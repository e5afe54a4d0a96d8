# SPDX-License-Identifier: Apache-2.0
"""Models on a GPU: what kvbench-dump-hf records there, and what methods do inside the model, is what it is on the
processor. Skipped where PyTorch finds no GPU. KVBENCH_ARCHITECTURES as in architectures_test.py."""
import sys

import environment

environment.use_torch("threadpoolctl")
from support import kvbench  # noqa: E402
import architectures  # noqa: E402
import h5py  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from architectures_test import CONTEXT, token_ids, wanted  # noqa: E402
from dumps import DumpTest  # noqa: E402
from kvbench.models.loading import TYPES  # noqa: E402

if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)
DEVICE = "cuda"
METHODS = (("exact", "100%"), ("sink", "16"), ("snapkv[window=8]", "16"), ("h2o+fp8", "60%mem"))


def arrays_of(path):
    """The arrays of an HDF5 file by name, and its attributes but those that say when and from what it was made."""
    with h5py.File(path) as file:
        arrays, facts = {}, {}

        def add(name, item):
            facts.update({f"{name}.{key}": value for key, value in item.attrs.items()})
            if isinstance(item, h5py.Dataset):
                arrays[name] = item[()]
        file.visititems(add)
        return arrays, facts


def own_logits(model):
    return model(torch.tensor([token_ids()], device=model.device)).logits[0].float().cpu().numpy()


class DeviceTest(DumpTest):
    def setUp(self):
        super().setUp()
        torch.set_grad_enabled(False)

    def model(self, name="llama"):
        return hf_models.build(*hf_models.MODELS[name][:2])

    def same(self, here, there, what, tolerance=1e-3):
        here, there = (np.asarray(x, np.float64) for x in (here, there))
        self.assertEqual(here.shape, there.shape, what)
        far = np.linalg.norm(there - here) / max(np.linalg.norm(here), 1e-30)
        self.assertLessEqual(far, tolerance, what)

    def save(self, model):
        model.save_pretrained(self.path("model"))
        self.ids(token_ids())

    def dump(self, device, *flags):
        """Code and messages of a dump of the saved model to DEVICE.h5."""
        code, said = self.dump_hf("--model", self.path("model"), "--ids", self.path("ids"), "--prompt-tokens", CONTEXT,
                                  "--queries", "all", "--device", device, "-o", self.path(f"{device}.h5"), "--force",
                                  "--quiet", *flags)
        return code, " ".join(said.split())

    def check_dumps(self, model, *flags):
        """Whether the model was dumped on both, with equal arrays; or it was refused on both for the same reason."""
        self.save(model)
        here, there = self.dump("cpu", *flags), self.dump(DEVICE, *flags)
        self.assertEqual(here[0], there[0], (here, there))
        if here[0]:
            self.assertEqual(here[1], there[1])
            return False
        self.check_files("cpu.h5", f"{DEVICE}.h5")
        return True

    def check_files(self, here, there):
        (here, facts), (there, facts_there) = arrays_of(self.path(here)), arrays_of(self.path(there))
        self.assertEqual(sorted(here), sorted(there))
        for name, array in here.items():
            if np.issubdtype(array.dtype, np.number):
                self.same(array, there[name], name)
        for name, value in facts.items():
            if np.issubdtype(np.asarray(value).dtype, np.number):
                np.testing.assert_allclose(facts_there[name], value, rtol=1e-3, err_msg=name)
            else:
                self.assertEqual(str(facts_there[name]), str(value), name)

    def logits(self, model, method, budget, **options):
        """Logits with a method, or the message of the refusal."""
        try:
            with kvbench.compressed(model, method, budget, context=CONTEXT, **options):
                return own_logits(model)
        except kvbench.Error as refusal:
            return str(refusal)

    def check_methods(self, model, methods=METHODS, **options):
        here = [self.logits(model, *method, **options) for method in methods]
        model.to(DEVICE)
        for method, expected in zip(methods, here):
            got = self.logits(model, *method, **options)
            if isinstance(expected, str):
                self.assertEqual(got, expected, method)
            else:
                self.assertNotIsInstance(got, str, got)
                self.same(expected, got, method)
        return not isinstance(here[0], str)

    def test_architectures(self):
        known = architectures.names()
        for name in wanted():
            if name in known:
                with self.subTest(name):
                    model = architectures.build(name)
                    results = self.check_dumps(model), self.check_methods(model)
                    for what, right in zip(("dump", "compressed"), results):
                        print(f"{name}: {what}: {'equal' if right else 'refused on both'}", file=sys.stderr)

    def test_everything_that_a_dump_can_hold(self):
        for name in ("llama", "gemma3", "gpt2"):
            with self.subTest(name):
                model = self.model(name)
                scores = "damage-votes,kvzip,kvgrad"
                hf_models.small_tokenizer([*map(str, range(97))]).save_pretrained(self.path("model"))
                self.assertTrue(self.check_dumps(model, "--probes", "3", "--pre-rope", "--speculated",
                                                 "--attention-output", "--scores", scores, "--vote-probes", "3"))
                for scorer in scores.split(","):
                    self.check_files(f"cpu.{scorer}.h5", f"{DEVICE}.{scorer}.h5")

    def test_half_types(self):
        for weights in ("bf16", "f16"):
            with self.subTest(weights):
                model = self.model()
                self.save(model)
                code, said = self.dump(DEVICE, "--weights", weights, "--probes", "2")
                self.assertEqual(code, 0, said)
                model = model.to(DEVICE, TYPES[weights])
                self.same(own_logits(model), self.logits(model, "exact", "100%"), weights, 5e-2)

    def test_settings_of_compressed(self):
        for options in ({"inject_scale": 0.5}, {"decode": 30}, {"rope_layout": "interleaved"}, {"whole": True}):
            self.check_methods(self.model(), **options)
        self.check_methods(self.model(), (("damage-votes", "16"), ("damage-votes+fp8[scope=model]", "60%mem")))

    def test_generate(self):
        model, made = self.model(), []
        for device in ("cpu", DEVICE):
            model.to(device)
            given = torch.tensor([token_ids()], device=device)
            with kvbench.compressed(model, "snapkv[window=8]", "16") as run:
                text = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=20, do_sample=False)
            made.append((text.tolist(), run.bytes, run.decoded))
        self.assertEqual(*made)

    def test_evaluate(self):
        model, made = self.model(), []
        for device in ("cpu", DEVICE):
            rows = kvbench.evaluate(model.to(device), [token_ids()], ["h2o", "snapkv+fp8[window=8]"], ["60%mem"],
                                    context=CONTEXT, score=8)
            made.append([(row["method"], row["status"], row["kl_mean"], row["nll"]) for row in rows])
        for here, there in zip(*made):
            self.assertEqual(here[:2], there[:2])
            self.same(here[2:], there[2:], here)

    def test_a_model_of_which_a_layer_is_on_the_processor(self):
        from accelerate import dispatch_model
        model = self.model()
        here = [self.logits(model, *method) for method in METHODS]
        places = {name: DEVICE for name, _ in model.named_children() if name != "model"}
        places |= {f"model.{name}": DEVICE for name, _ in model.model.named_children() if name != "layers"}
        dispatch_model(model, {**places, "model.layers.0": DEVICE, "model.layers.1": "cpu"}, main_device=DEVICE)
        for method, expected in zip(METHODS, here):
            self.same(expected, self.logits(model, *method), method)

    def test_autocast(self):
        model = self.model().to(DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16):
            self.same(own_logits(model), self.logits(model, "exact", "100%"), "autocast", 5e-2)
