"""A picture of a search: one line per trial through its hyperparameter values, coloured by its score."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go


def parallel_coordinates(trials: pd.DataFrame, keys: Sequence[str], objective: str) -> str:
    """The picture as an HTML page that needs no network. Trials without a score are left out."""
    scored = trials[trials["score"].notna()] if "score" in trials else trials.iloc[:0]
    dimensions = [_dimension(key, scored[f"config/{key}"]) for key in keys if f"config/{key}" in scored]
    figure = go.Figure()
    if len(scored):
        dimensions.append({"label": objective, "values": scored["score"]})
        line = {"color": scored["score"], "colorscale": "Viridis", "showscale": True}
        figure.add_trace(go.Parcoords(dimensions=dimensions, line=line))
    figure.update_layout(title=f"{len(scored)} trials by {objective}, on validation")
    return figure.to_html(include_plotlyjs=True, full_html=True)


def _dimension(key: str, values: pd.Series) -> dict:
    """One axis of the picture. Each value that is not a number gets its own place."""
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return {"label": key, "values": values}
    names = sorted(values.astype(str).unique())
    places = values.astype(str).map({name: place for place, name in enumerate(names)})
    return {"label": key, "values": places, "tickvals": list(range(len(names))), "ticktext": names}
