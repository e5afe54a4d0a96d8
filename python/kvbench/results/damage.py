# SPDX-License-Identifier: Apache-2.0
"""What docs/damage.md fixes: where predictions of KL end, how many gradients votes of damage need,
and which configurations are measured as anchors."""

# The stream_err of a layer beyond which predictions of KL end. Replays say it of traces with probes, by the same two
# numbers in lib/kvbench/replay/records/predicted_kl.hpp.
REGION = 0.3
LARGE = 0.15  # nats per token, above which predictions are mostly too small

VOTE_PROBES = 8  # gradients of the method damage-votes

# Anchors: methods and budgets that are measured in all layers together, beside q4_0 in the form that llama.cpp runs,
# which is also measured in each layer alone: it rotates the channels where it can.
ROTATED, PLAIN = ("q4_0[hadamard=true]", "100%mem"), ("q4_0", "100%mem")
ROTATION = 64  # of whose multiples the numbers of channels must be
STANDARD = (
    ("q8_0", "100%mem"), ("q5_1", "100%mem"), ("int2", "100%mem"),  # by token
    ("kivi4", "100%mem"), ("kivi2", "100%mem"),  # keys by channel
    ("q4_0[values=q8_0]", "100%mem"), ("q8_0[values=q4_0]", "100%mem"),  # keys alone, values alone
    ("h2o", "50%mem"), ("h2o", "25%mem"), ("h2o", "12.5%mem"),
    ("snapkv", "50%mem"), ("snapkv", "25%mem"), ("snapkv", "12.5%mem"),
    ("h2o+q8_0", "25%mem"), ("h2o+q5_1", "25%mem"), ("h2o+kivi4", "25%mem"))


def outside_by(kl_about: str) -> str:
    """Why a row is outside the region of predictions by its column kl_about; empty if it is not."""
    if not kl_about.startswith("outside"):
        return ""
    return kl_about.partition(":")[2].split(";")[0].strip() or "outside of what can be predicted"
