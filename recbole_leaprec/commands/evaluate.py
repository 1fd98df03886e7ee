"""`leaprec evaluate`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.options import CHECKPOINT
from recbole_leaprec.cli.result_table import show_result
from recbole_leaprec.settings.keys import EVALUATION_KEYS


@command(
    "evaluate",
    keys=EVALUATION_KEYS,
    about_keys=f"Keys that can be changed (all others belong to the trained model): {', '.join(sorted(EVALUATION_KEYS))}",
    listed=EVALUATION_KEYS,
    as_trained=True,
)
@CHECKPOINT
def evaluate(keys: dict[str, Any], checkpoint: str) -> None:
    """Rerank and measure the test lists of a trained model again.

    leaprec evaluate --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth --rerank_lambda=0.5
    leaprec evaluate --checkpoint=... --reranker=none --topk=[5,10,20]
    leaprec evaluate --checkpoint=... --target_skl=0.1
    """
    with loading():
        from recbole_leaprec.quick_start import evaluate as run

    show_result(run(checkpoint, keys))
