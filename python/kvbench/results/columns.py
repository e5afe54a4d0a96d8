# SPDX-License-Identifier: Apache-2.0
"""The columns of `kvbench replay --columns` and `kvbench eval --columns` by type; all others are numbers. A budget or a
commit may look like a number but is text.

Written by scripts/docs.
"""

TEXT = frozenset("""
model sha256 rope_layout text task document question document_sha256 documents_sha256 inject device method params
budget runs_in status reason method_layers weights kv_dtype protect decoded protocol generate scored_sha256
kept_by_span lost_by_span nll_verdict match_verdict json_verdict verdict_reason version commit isa run trace prompt
prompt_name costs kl_about ranked_by best tested_over
""".split())
INTEGER = frozenset("""
inject_layer layer turn model_layers document_seed documents seeds compressed_layers scored scored_key answers kv_head
head query seed dense query_rows layers tied blocks
""".split())
