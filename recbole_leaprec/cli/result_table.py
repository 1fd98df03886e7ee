"""The table at the end of a run."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.common.metric_titles import metric_title


def show_result(result: dict[str, Any]) -> None:
    """Print the metrics of a run or an evaluation, and where its files are."""
    print(f"\n{result['model']} on {result['dataset']}, test\n{result_table(result)}\n\neverything is in {result['folder']}")


def result_table(result: dict[str, Any]) -> str:
    """Test metrics of the backbone and of each reranker, one line each.

    Example:
        >>> rows = [{"reranker": "leaprec", "lambda": 0.3, "test": {"hit@10": 0.2, "skl@10": 0.4}, "seconds": 1.5}]
        >>> print(result_table({"backbone": {"test": {"hit@10": 0.25, "skl@10": 1.0}}, "rerank": rows}))
                              HR@10  S_KL@10   seconds
        backbone             0.2500   1.0000
        leaprec lambda=0.3   0.2000   0.4000       1.5
    """
    rows = [["backbone", result["backbone"]["test"], ""]]
    for entry in result["rerank"]:
        name = entry["reranker"] if entry["reranker"] == "none" else f"{entry['reranker']} lambda={entry['lambda']:g}"
        if entry.get("order") == "relevance":
            name += " by relevance"
        rows.append([name, entry["test"], f"{entry['seconds']:.1f}"])
    metrics = list(rows[0][1])
    width = max(len(name) for name, _, _ in rows)
    titles = [metric_title(metric) for metric in metrics]
    lines = [" ".join([" " * width, *(title.rjust(8) for title in titles), "seconds".rjust(9)])]
    for name, values, seconds in rows:
        cells = (f"{values[metric]:.4f}".rjust(max(8, len(title))) for metric, title in zip(metrics, titles, strict=True))
        lines.append(" ".join([name.ljust(width), *cells, seconds.rjust(9)]).rstrip())
    return "\n".join(lines)
