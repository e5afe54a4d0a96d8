# SPDX-License-Identifier: Apache-2.0
"""Weights that the files of a model lack, hold in vain, or hold in other shapes are refused by name."""
import json
import os

import environment

environment.use_torch()
from support import kvbench  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
from dumps import DumpTest  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


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
