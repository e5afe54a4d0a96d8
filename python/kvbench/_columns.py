# SPDX-License-Identifier: Apache-2.0
"""The columns of `kvbench replay --columns` by type; all others are numbers. A budget or a commit may look like a
number but is text.

Written by scripts/docs.
"""

TEXT = frozenset("""
run trace sha256 model rope_layout prompt protocol device method params budget runs_in refit status reason costs
kl_about ranked_by best tested_over version commit isa
""".split())
INTEGER = frozenset("""
layer kv_head head query seed dense query_rows layers compressed_layers model_layers tied blocks
""".split())
