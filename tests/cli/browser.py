# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium without further packages: the DevTools protocol over two pipes, as JSON texts that end in a zero
byte."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="kvbench-browser-")
        commands, self.to = os.pipe()
        self.source, answers = os.pipe()

        def as_3_and_4():
            a, b = os.dup(commands), os.dup(answers)  # neither of them 3 or 4 any more
            os.dup2(a, 3), os.dup2(b, 4)

        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder}")
        self.process = subprocess.Popen([PROGRAM, *flags], preexec_fn=as_3_and_4, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands), os.close(answers)
        self.buffer, self.last, self.events, self.session = b"", 0, [], None

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to), os.close(self.source)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self):
        deadline = time.monotonic() + 60
        while b"\0" not in self.buffer:
            if not select.select([self.source], [], [], deadline - time.monotonic())[0]:
                raise TimeoutError("chromium does not answer")
            self.buffer += os.read(self.source, 1 << 20)
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        """The result of a command; events that arrive before it are kept."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters,
                   **({"sessionId": self.session} if self.session else {})}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.last:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, path, width, scripts=True, dark=False):
        """Loads a file into a new page that is `width` px wide. complaints() reports on it."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events = []
        self.url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=self.url)
        self.wait_for("Page.loadEventFired")

    def complaints(self):
        """What the page wrote to the console, which errors it caused, and what it requested beside itself."""
        self.evaluate("0")  # events before this answer have arrived
        out = []
        for event in self.events:
            what = event.get("params", {})
            if event.get("method") == "Runtime.consoleAPICalled":
                out.append(f"console: {what['args']}")
            if event.get("method") == "Runtime.exceptionThrown":
                out.append(f"exception: {what['exceptionDetails']}")
            if event.get("method") == "Log.entryAdded":
                out.append(f"log: {what['entry']['text']}")
            if event.get("method") == "Network.requestWillBeSent" and what["request"]["url"] != self.url:
                out.append(f"request: {what['request']['url']}")
        return out

    def picture(self, path):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
