"""`leaprec users`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import CHECKPOINT, Lambdas, Text, option, output_dir
from recbole_leaprec.common.defaults import USERS_LAMBDAS
from recbole_leaprec.settings.keys import MEASUREMENT_KEYS


@command("users", keys=MEASUREMENT_KEYS, about_keys=f"Keys that can be changed: {', '.join(sorted(MEASUREMENT_KEYS))}")
@CHECKPOINT
@option("user", Text(), "a user of the dataset whose lists to show", shown="none")
@option("reranker", Text(), "name of the reranker", "leaprec")
@option("lambdas", Lambdas(), "start:stop:step, or numbers with commas", USERS_LAMBDAS)
@output_dir("output/users-<time>")
def users(
    keys: dict[str, Any], checkpoint: str, user: str | None, reranker: str, lambdas: list[float], output_dir: str | None
) -> None:
    """Show how S_KL spreads over the test users at several lambdas. With --user, show that user's list at each lambda.

    leaprec users --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth
    leaprec users --checkpoint=... --user=42 --lambdas=0,0.3,0.9
    """
    with loading():
        from recbole_leaprec.analysis.users import users as run

    with folder_for("users", output_dir) as folder:
        result = run(folder, checkpoint, user, reranker, lambdas, config_dict=keys)
    table = result["density"].groupby("lambda", as_index=False)[["mean_skl", "ndcg"]].first()
    print(f"\n{result['case'] or table.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")
