# SPDX-License-Identifier: Apache-2.0
"""In a locale with a decimal comma, the package reads and writes the same numbers."""
import datetime
import locale
import os
import subprocess
import unittest

from support import PackageTest, kvbench, run

NAME = "de_DE.UTF-8"


def set_comma(folder):
    """Sets the German locale, made by localedef if the system lacks it. Skips the test where there is none."""
    try:
        locale.setlocale(locale.LC_ALL, NAME)
    except locale.Error:
        try:
            subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, NAME)],
                           capture_output=True, check=False)
            os.environ["LOCPATH"] = folder
            locale.setlocale(locale.LC_ALL, NAME)
        except (OSError, locale.Error):
            raise unittest.SkipTest(f"there is no locale {NAME}, and localedef cannot make it") from None


class DecimalComma(PackageTest):
    def results(self, trace):
        """What the package makes of the same files, as comparable values."""
        found = [kvbench.load_csv(self.path("rows.csv"))]
        with kvbench.Trace(trace) as opened, kvbench.Raw(self.path("raw.h5")) as raw:
            layer = opened.prompts["0"].layers[0]
            found += [layer.scale, layer.rope_theta, layer.keys(0).tobytes(), raw.cells,
                      raw.heads[0].metric("rel_err").tobytes(), raw.heads[0].kept_tokens()]
            with kvbench.TraceWriter(self.path("copy.h5"), opened) as out:
                out.prompt("0", opened.prompts["0"])
                out.layer("0", 0, layer, **{name: layer.array(name) for name in layer.arrays})
        with open(self.path("copy.h5"), "rb") as file:
            found.append(file.read())
        return found

    def test_nothing_depends_on_the_locale(self):
        os.environ["SOURCE_DATE_EPOCH"] = "1234567"
        trace = self.synth("t.h5")
        run("replay", trace, "-m", "sink,snapkv", "-b", "12.5%", "--raw", self.path("raw.h5"), "-o",
            self.path("rows.csv"))
        plain = self.results(trace)
        self.addCleanup(locale.setlocale, locale.LC_ALL, locale.setlocale(locale.LC_ALL))
        set_comma(self.folder)
        self.assertEqual((locale.format_string("%.1f", 1.5), datetime.date(2026, 3, 1).strftime("%B")), ("1,5", "März"))
        self.assertEqual(self.results(trace), plain)
