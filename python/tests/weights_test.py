# SPDX-License-Identifier: Apache-2.0
"""Weights that the files of a model lack, hold in vain, or hold in other shapes are refused by name."""
import json
import os
import pathlib
import sys

import environment

environment.use_torch("gguf")
sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests" / "cli" / "kvdump"))
from support import kvbench  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
from dumps import DumpTest  # noqa: E402
import tiny_model  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

MATRICES = [name for name, shape in tiny_model.LLAMA.items() if len(shape) == 2] + ["token_embd"]
Q4_0 = dict.fromkeys(MATRICES, "Q4_0")
# element types of matrices, general.file_type (0: F32, 2: Q4_0), the types that a trace states
STORED = [({}, 0, "F32"), ({}, 2, "F32"), ({}, None, "F32"), (Q4_0, 0, "F32 from Q4_0"), (Q4_0, None, "F32 from Q4_0"),
          (Q4_0 | {"token_embd": "Q8_0"}, 2, "F32 from Q4_0, Q8_0"), ({"ffn_down": "F16"}, 0, "F32 from F32, F16")]
SPLITS = [{}, {"split_max_tensors": 6}, {"split_max_tensors": 6, "small_first_shard": True}]


class Gguf(DumpTest):
    def written(self, types=None, file_type=None, **split):
        """The files of a model, which are the only ones of this folder."""
        for old in pathlib.Path(self.folder).glob("m*.gguf"):
            old.unlink()
        tiny_model.write(self.path("m.gguf"), "llama", tiny_model.LLAMA, 2, {"rope.freq_base": 1e4}, types=types,
                         file_type=file_type, **split)
        return sorted(map(str, pathlib.Path(self.folder).glob("m*.gguf")))

    def test_types_of_weights_are_those_of_the_tensors(self):
        for types, file_type, stated in STORED:
            for split in SPLITS:
                with self.subTest(types=types, file_type=file_type, split=split):
                    model = self.written(types, file_type, **split)[0]
                    said = self.dumped("--model", model, "--ids", self.ids(range(1, 9)), "--force")
                    self.assertNotIn("%|", said)  # a bar of transformers
                    with kvbench.Trace(self.path("t.h5")) as trace:
                        self.assertEqual(trace.quantisation, stated)

    def test_any_part_of_a_split_model_is_the_model(self):
        ids = torch.arange(1, 30)[None]
        with torch.no_grad():
            expected = kvbench.load_model(*self.written(Q4_0))(ids).logits
            for split in SPLITS[1:]:
                files = self.written(Q4_0, **split)
                self.assertGreater(len(files), 3)
                os.symlink(files[0], self.path("mine.gguf"))
                for name in (files[0], files[-1], self.path("mine.gguf")):
                    with self.subTest(name):
                        self.assertTrue(torch.equal(kvbench.load_model(name)(ids).logits, expected))
                os.remove(self.path("mine.gguf"))

    def test_parts_that_are_missing_or_renamed(self):
        for lost in (0, 1, -1):
            files = self.written(split_max_tensors=6)
            os.remove(files[lost])
            with self.refuses(files[lost - 1], f"one of {len(files)} files", f"{files[lost]} is missing; fetch it"):
                kvbench.load_model(files[lost - 1])
        files = self.written(split_max_tensors=6)
        os.rename(files[0], self.path("mine.gguf"))
        with self.refuses("mine.gguf", f"one of {len(files)} files", "name them as they were made"):
            kvbench.load_model(self.path("mine.gguf"))


class Weights(DumpTest):
    def setUp(self):
        super().setUp()
        torch.set_grad_enabled(False)
        self.folder_ = self.path("model")

    def saved(self, name="llama", **options):
        kind, arguments, _ = hf_models.MODELS[name]
        model = hf_models.build(kind, arguments)
        model.save_pretrained(self.folder_, **options)
        return model

    def changed(self, change, file="model.safetensors"):
        path = os.path.join(self.folder_, file)
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, metadata={"format": "pt"})

    def refused(self, *words):
        """By kvbench-dump-hf and by load_model()."""
        with self.refuses(*words):
            kvbench.load_model(self.folder_)
        said = self.dumped("--model", self.folder_, "--ids", self.ids(range(1, 9)), code=2)
        self.assertFalse(os.path.exists(self.path("t.h5")))
        for word in words:
            self.assertRegex(said, word)

    def test_a_model_that_is_whole(self):
        for name in ("llama", "gemma2", "gpt2"):  # gemma2 and gpt2 tie their embeddings
            model = self.saved(name)
            ids = torch.arange(1, 30)[None]
            self.assertTrue(torch.equal(kvbench.load_model(self.folder_)(ids).logits, model(ids).logits))

    def test_missing_tensors(self):
        self.saved()
        self.changed(lambda tensors: [tensors.pop(name) for name in list(tensors) if ".layers.1." in name])
        self.refused("lack 13 tensors", "model.layers.1.input_layernorm.weight", "random")

    def test_renamed_tensors(self):
        self.saved()
        self.changed(lambda tensors: tensors.update({"model.layers.0.self_attn.query.weight":
                                                     tensors.pop("model.layers.0.self_attn.q_proj.weight")}))
        self.refused("lack 1 tensors", "q_proj.weight", "self_attn.query.weight")

    def test_unused_tensors(self):
        self.saved()
        self.changed(lambda tensors: tensors.update({"model.layers.2.extra.weight": torch.ones(3)}))
        self.refused("hold 1 tensors", "model.layers.2.extra.weight")

    def test_tensors_of_other_shapes(self):
        self.saved()
        self.changed(lambda tensors: tensors.update({"model.norm.weight": torch.ones(7)}))
        self.refused("other shapes than config.json says: model.norm.weight")

    def test_a_buffer_may_have_a_place(self):
        self.saved()
        self.changed(lambda tensors: tensors.update({"model.rotary_emb.inv_freq": torch.ones(8)}))
        kvbench.load_model(self.folder_)

    def test_missing_files_of_an_index(self):
        self.saved(max_shard_size="20KB")
        with open(os.path.join(self.folder_, "model.safetensors.index.json")) as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
        self.assertGreater(len(files), 3)
        kvbench.load_model(self.folder_)
        os.remove(os.path.join(self.folder_, files[1]))
        self.refused(files[1], f"of the {len(files)} files", "model.safetensors.index.json")
