# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check without a GPU: its refusals, and its report with fake tools in place of those of a GPU machine.
    gpu_check_test.py SCRIPT"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv[1]

NVIDIA_SMI = """case "$1" in -L) echo "GPU 0: Stand-in (UUID: 0)" ;; *) echo "Stand-in, 1000 MiB, 580.1" ;; esac"""
NVCC = 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
# Configuring creates the programs that the build would make: tests that pass, and a benchmark that prints $BENCH.
CMAKE = """[ "$1" = -S ] || exit 0
mkdir -p "$4/tests" "$4/bench"
for test in equivalence_cuda agreement_cuda; do
  printf '#!/bin/sh\\necho "test cases: 3 | 3 passed"\\n' > "$4/tests/test_$test"
done
printf '#!/bin/sh\\necho "$BENCH"\\n' > "$4/bench/kvbench_bench"
chmod +x "$4"/tests/* "$4"/bench/*"""
CTEST = 'echo "$CTEST"'
SANITIZER = """[ "$2" != racecheck ] || { echo "Device not supported"; exit 1; }
shift 4
exec "$@" """
PYTHON = "exit 1"   # no PyTorch


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.tools = os.path.join(self.folder.name, "bin")
        os.mkdir(self.tools)

    def tearDown(self):
        self.folder.cleanup()

    def tool(self, name, text):
        path = os.path.join(self.tools, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def check(self, *flags, **environment):
        return subprocess.run([SCRIPT, "--build", os.path.join(self.folder.name, "build"), *flags],
                              capture_output=True, text=True,
                              env={**os.environ, "PATH": self.tools + ":" + os.environ["PATH"], **environment})

    def result(self):
        with open(os.path.join(self.folder.name, "build", "result.md")) as file:
            return file.read()

    def all_tools(self):
        for name, text in [("nvidia-smi", NVIDIA_SMI), ("nvcc", NVCC), ("cmake", CMAKE), ("ctest", CTEST),
                           ("compute-sanitizer", SANITIZER), ("python3", PYTHON)]:
            self.tool(name, text)

    def test_refusals(self):
        self.tool("nvcc", NVCC)
        self.tool("cmake", CMAKE)
        self.tool("nvidia-smi", "exit 9")
        done = self.check()
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("no NVIDIA GPU found", done.stderr)
        self.assertEqual(self.check("--bench").returncode, 2)

    def test_all_passes(self):
        self.all_tools()
        done = self.check(BENCH="exact_attention 0.1 ms", CTEST="100% tests passed")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = self.result()
        self.assertTrue(text.startswith("## Stand-in, 20"), text)
        self.assertIn("CUDA 13.0", text)
        self.assertIn("| GPU tests | passed |", text)
        self.assertIn("| memcheck, methods | passed |", text)
        self.assertIn("| racecheck, kernels | could not run here |", text)
        self.assertIn("    exact_attention 0.1 ms", text)
        self.assertIn("no PyTorch", done.stderr)

    def test_failures(self):
        self.all_tools()
        done = self.check(BENCH="topk differs from the reference by 1.0", CTEST="equivalence_cuda ...***Skipped")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        text = self.result()
        self.assertIn("| GPU tests | FAILED |", text)
        self.assertIn("| kernels relative to their ceilings | FAILED |", text)
        self.assertIn("| CPU tests | passed |", text)
