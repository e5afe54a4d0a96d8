# SPDX-License-Identifier: Apache-2.0
"""kvbench.sentences(): what comparisons decide, in words."""

from typing import Any

from .._error import require

_COLUMNS = ("a", "b", "budget_a", "verdict", "reason", "metric", "mean_a", "mean_b", "p_adjusted", "tested_over")
_VERDICTS = {"a better": "better than", "b better": "worse than", "not distinguishable": "not distinguishable from",
             "not tested": "not tested against"}


def sentences(comparisons: Any) -> list[str]:
    """What the rows of ``compare(results, a=METHOD)`` decide, in words.

    Parameters
    ----------
    comparisons : Rows, data frame, or list of dict
        The rows of `compare()`.

    Returns
    -------
    list of str
        One sentence for each budget, which names the methods that METHOD is better or worse than and those from which
        no test tells it, their means, the largest of the adjusted p-values, and the units of the test. "Better" is a
        lower error, or a higher recall.

    Raises
    ------
    Error
        If these are not the rows of `compare()`.
    """
    rows = comparisons.to_dict("records") if hasattr(comparisons, "to_dict") else comparisons
    require(isinstance(rows, (list, tuple)) and all(isinstance(row, dict) and all(name in row for name in _COLUMNS)
                                                    for row in rows), "sentences()",
            f"these are not the rows of kvbench.compare(), with the columns {', '.join(_COLUMNS)}.")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["a"], row["budget_a"]), []).append(row)
    return [_sentence(*key, group) for key, group in groups.items()]


def _sentence(method: str, budget: str, rows: list[dict[str, Any]]) -> str:
    compared = [row for row in rows if row["verdict"] != "skipped"]
    left_out = [row["b"] for row in rows if row["verdict"] == "skipped"]
    rest = f" Not compared: {', '.join(left_out)}." if left_out else ""
    if not compared:
        return f"At {budget} nothing can be compared with {method}: {rows[0]['reason']}."
    kind, column = _mean_of(compared)
    parts = [part for verdict, words in _VERDICTS.items()
             if (part := _part(words, [row for row in compared if row["verdict"] == verdict], column))]
    first = compared[0]
    tested = f"; tested over {first['tested_over']}" if isinstance(first["tested_over"], str) else ""
    return (f"At {budget} {method}, with a {kind} {first['metric']} of {first[f'{column}_a']:.3g}, is "
            f"{', '.join(parts)}{tested}.{rest}")


def _mean_of(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """What the means are called that all of these tests compare, and the beginning of their columns: those over layers
    and texts, which are geometric ones where there is a ratio."""
    def known(name: str) -> bool:
        return all(row.get(name) is not None and row[name] == row[name] for row in rows)
    if not known("over_places_a"):
        return "mean", "mean"
    return "geometric mean" if known("ratio") else "mean", "over_places"


def _part(words: str, rows: list[dict[str, Any]], column: str) -> str:
    if not rows:
        return ""
    means = ", ".join(f"{row['b']} {row[f'{column}_b']:.3g}" for row in rows)
    limit = f"; p <= {max(row['p_adjusted'] for row in rows):.2g}" if words.split()[0] in ("better", "worse") else ""
    return f"{words} {len(rows)} ({means}{limit})"
