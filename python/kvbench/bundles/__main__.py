# SPDX-License-Identifier: Apache-2.0
"""python -m kvbench.bundles bundle|verify|cite|claim|report ...: the same as kvbench-bundle, kvbench-verify,
kvbench-cite, kvbench-claim and kvbench-report."""

import sys

from .command import bundle_main, cite_main, claim_main, report_main, verify_main

if __name__ == "__main__":
    mains = {"bundle": bundle_main, "verify": verify_main, "cite": cite_main, "claim": claim_main,
             "report": report_main}
    if sys.argv[1:2] and sys.argv[1] in mains:
        sys.exit(mains[sys.argv[1]](sys.argv[2:]))
    sys.exit(f"python -m kvbench.bundles {'|'.join(mains)} ...")
