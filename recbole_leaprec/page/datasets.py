"""The front page of a study of several datasets: their sizes, as in the paper's Table 1, and links to their pages."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from recbole_leaprec.analysis.describe import Description
from recbole_leaprec.common.files import write_csv, written_whole

COLUMNS = {
    "users": "{:,}",
    "items": "{:,}",
    "categories": "{:,}",
    "interactions": "{:,}",
    "mean_length": "{:.2f}",
    "categories_per_item": "{:.4f}",
}


def write_datasets(folder: Path, title: str, descriptions: Mapping[str, Description]) -> Path:
    """Write `datasets.csv` and `report.html` to the folder above the datasets' folders; returns the path of the page."""
    table = pd.DataFrame(
        [{"dataset": name, **{column: getattr(one, column) for column in COLUMNS}} for name, one in descriptions.items()]
    )
    write_csv(folder / "datasets.csv", table)
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in table)
    rows = "".join(
        f'<tr><td><a href="{escape(quote(row["dataset"]))}/report.html">{escape(row["dataset"])}</a></td>'
        + "".join(f"<td>{form.format(row[column])}</td>" for column, form in COLUMNS.items())
        + "</tr>"
        for row in table.to_dict("records")
    )
    with written_whole(folder / "report.html") as scratch:
        scratch.write_text(_PAGE.format(title=escape(title), head=head, rows=rows), encoding="utf-8")
    return folder / "report.html"


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark; }}
table {{ border-collapse: collapse; }} th, td {{ padding: .3rem .8rem; text-align: right; }} th:first-child, td:first-child {{ text-align: left; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>The datasets as they were trained and tested on. Each name leads to its page.</p>
<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>
</body>
</html>
"""
