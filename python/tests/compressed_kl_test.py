# SPDX-License-Identifier: Apache-2.0
"""kvbench.compressed() against kveval: the same methods inside the same real model, in transformers and llama.cpp."""
import json
import os
import subprocess
import sys

import environment

environment.use(["h5py", "numpy", "torch", "transformers", "gguf", "threadpoolctl"], "KVBENCH_TORCH_PYTHON", "torch",
                "scripts/fetch-model --hf")
from support import SAMPLE, PackageTest, kvbench, main  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
MODEL = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and MODEL.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)
CONTEXT, SCORED = 256, 48
METHODS = "exact,snapkv,h2o,chelsea,uniform,snapkv+kivi4,snapkv+q4_0[q4_0.hadamard=true]"


class Divergence(PackageTest):
    def evaluated(self, ids):
        """Rows of kveval for a document of these tokens."""
        with open(self.path("ids"), "w") as file:
            file.write(" ".join(map(str, ids)))
        done = subprocess.run([KVEVAL, str(MODEL), "--ids", self.path("ids"), "--context", str(CONTEXT), "--score",
                               str(SCORED), "-m", METHODS, "-b", "25%mem,96", "--format", "json", "-q"],
                              capture_output=True, text=True)
        rows = json.loads(done.stdout)
        self.assertEqual({row["status"] for row in rows}, {"ok", "infeasible"}, done.stderr)  # exact at 25 %
        return [row for row in rows if row["status"] == "ok"]

    def test_kl_is_that_of_kveval(self):
        with kvbench.Trace(SAMPLE) as trace:
            ids = trace.prompts["0"].tokens[:CONTEXT + SCORED].tolist()
        transformers.utils.logging.disable_progress_bar()
        model = kvbench.load_model(str(MODEL))
        torch.set_grad_enabled(False)

        def predicted():  # of the tokens after each scored one but the last
            return torch.log_softmax(model(torch.tensor([ids])).logits[0, CONTEXT:-1].double(), -1)
        full, rows = predicted(), self.evaluated(ids)
        self.assertEqual(len(rows), 13)
        for row in rows:
            method = row["method"] + (f"[{row['params']}]" if row["params"] else "")
            order = None if "q4_0" in method else row["rope_layout"]  # a format of ggml has that of llama.cpp
            tolerance = 0.05 if "q4_0" in method else 0.01  # docs/eval.md: how exact KL is where methods round
            with self.subTest(method, budget=row["budget"]), \
                    kvbench.compressed(model, method, row["budget"], context=CONTEXT, rope_layout=order) as run:
                self.assertEqual((run.rope_layout, row["rope_layout"]), ("interleaved", "interleaved"))
                kl = float((full.exp() * (full - predicted())).sum(-1).mean())
                self.assertLess(abs(kl - row["kl_mean"]), 1e-6 + tolerance * row["kl_mean"])
                self.assertAlmostEqual((run.bytes["kv"] + run.bytes["meta"]) / 90, row["total_bytes"], delta=1)


if __name__ == "__main__":
    main()
