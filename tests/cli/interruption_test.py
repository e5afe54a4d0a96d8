# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and kill -9 during a replay leave no file under the final name, and do not change an existing file."""
import os
import signal
import subprocess
import time

from support import CliTest, KVBENCH, main


class Interruption(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.long_trace = cls.synth("long.h5", "--prompts", 8)

    def start(self, out):
        """Starts a replay that takes many seconds, and waits until it has begun."""
        process = subprocess.Popen([KVBENCH, "replay", self.long_trace, "-m", "all", "-b", "5%,10%,20%,30%,40%", "--seeds", "100",
                                    "--device", "ref", "-o", out], stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not any(name.startswith("o.csv.tmp.") for name in os.listdir(self.folder)):
            self.assertLess(time.time(), deadline)
            time.sleep(0.02)
        time.sleep(0.5)
        self.assertIsNone(process.poll(), "the replay ended before it could be interrupted")
        return process

    def test_interrupt(self):
        out = os.path.join(self.folder, "o.csv")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(out)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, stderr)
            self.assertIn("interrupted", stderr)
            self.only_files("t.h5", "long.h5")

    def test_kill(self):
        out = os.path.join(self.folder, "o.csv")
        with open(out, "w") as file:
            file.write("old\n")
        process = self.start(out)
        process.kill()
        process.communicate(timeout=60)
        with open(out) as file:
            self.assertEqual(file.read(), "old\n")
        for name in os.listdir(self.folder):
            if name.startswith("o.csv"):
                os.remove(os.path.join(self.folder, name))


main()
