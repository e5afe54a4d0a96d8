# SPDX-License-Identifier: Apache-2.0
"""Names of configurations. lib/kvbench/methods/contract/method_name.hpp has their grammar; kvbench-choose also runs
without the extension, through which others ask it, so that this file reads the part of it that rows have."""

import re

# A method, which a path of a plan, of scores or of a method in Python may be, and behind + a quantiser.
_NAME = re.compile(r"(plan:.*|scores:.*\.h5|.*\.py:[^+]*|[^+]*)(?:\+(.*))?", re.DOTALL)


def parts_of(method: str) -> tuple[str, str]:
    """The column `method` of a row as the method that chooses tokens and the quantiser that stores them, empty if there
    is none."""
    found = _NAME.fullmatch(method)
    return (found[1], found[2] or "") if found else (method, "")


def own_plan(name: str) -> str:
    """The file name of a plan that kvbench-choose has made, without its folder, which may have been moved; empty for
    other methods. It has a digest, so that it is the plan."""
    found = re.fullmatch(r"plan:(?:.*/)?(plan-[0-9a-f]{12}\.toml)", name, re.DOTALL)
    return found[1] if found else ""


def configuration(row: dict[str, str]) -> str:
    """METHOD[PARAMETERS] of a row; of a plan of kvbench-choose plan:FILE."""
    if own_plan(row["method"]):
        return f"plan:{own_plan(row['method'])}"
    return f"{row['method']}[{row['params'].replace(';', ',')}]" if row["params"] else row["method"]
