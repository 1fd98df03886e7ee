"""Checks of settings against each other and against RecBole. Checks of single values are in `keys`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from recbole.evaluator import metric_types
from recbole.utils import EvaluatorType

from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.settings.keys import LOSS_TYPES, SOFTMAX, listed


def metric_names(metrics: Collection[str], topk: Collection[int]) -> list[str]:
    """The names of the results of an evaluation, such as NDCG@10. GAUC uses the whole ranking and has no K."""
    return list(dict.fromkeys(name if name.lower() == "gauc" else f"{name}@{k}" for name in metrics for k in topk))


def check_evaluation(final: Mapping[str, Any]) -> None:
    """Raise ValueError for settings of reranking, metrics or the split that do not fit together."""
    _check_reranking(final)
    _check_metrics(final)
    _check_protocol(final)


def _check_reranking(final: Mapping[str, Any]) -> None:
    if get_reranker(final["reranker"]).preference is None and final["target_skl"] is not None:
        raise ValueError(f"target_skl needs a reranker that calibrates, got {final['reranker']!r}")
    largest, metrics = max(listed(final["topk"])), listed(final["metrics"])
    if (candidates := final["rerank_candidates"]) is not None and candidates < largest:
        raise ValueError(f"rerank_candidates must be at least the largest K, {largest} (topk), got {candidates}")
    if final["target_skl"] is not None and "skl" not in [metric.lower() for metric in metrics]:
        raise ValueError(f"target_skl needs SKL among the metrics, got {metrics}")


def _check_metrics(final: Mapping[str, Any]) -> None:
    topk, metrics = listed(final["topk"]), listed(final["metrics"])
    ranking = [name for name, kind in metric_types.items() if kind == EvaluatorType.RANKING]
    for metric in metrics:
        if metric.lower() not in ranking:
            raise ValueError(unknown_name("ranking metric", metric, ranking))
    choices = metric_names(metrics, topk)
    if final["valid_metric"].lower() not in [choice.lower() for choice in choices]:
        raise ValueError(
            f"valid_metric must be one of {', '.join(choices)} (from metrics and topk), got {final['valid_metric']!r}"
        )


def _check_protocol(final: Mapping[str, Any]) -> None:
    if final["eval_step"] > final["epochs"]:
        raise ValueError(
            f"eval_step must be at most the epochs, {final['epochs']}: without a validation there is no best epoch to keep; "
            f"got {final['eval_step']}"
        )
    if final["benchmark_filename"] is not None:
        raise ValueError("benchmark_filename: splits made beforehand are not supported, the plugin splits by leave-one-out")
    asked = {"split": None, "order": None, "mode": "full"} | final["eval_args"]
    full = asked["mode"] in ("full", {"valid": "full", "test": "full"})
    if asked["split"] != {"LS": "valid_and_test"} or asked["order"] != "TO" or not full:
        raise ValueError(
            f"eval_args must have split {{LS: valid_and_test}}, order TO and mode full: the plugin evaluates by leave-one-out "
            f"in order of time, and full ranking; got {final['eval_args']}"
        )


def check_training(final: Mapping[str, Any], model: str, model_class: type) -> None:
    """Raise ValueError for settings of the loss, negatives or positions that the model cannot be trained with."""
    disentangled = issubclass(model_class, CalibrationDisentangledMixin)
    if disentangled and final["gamma"] == final["bpr_weight"] == 0:
        raise ValueError("gamma and bpr_weight are both 0: there is no loss left to train with")
    softmax = final.get("loss_type") == SOFTMAX
    if disentangled and final.get("loss_type") not in LOSS_TYPES:
        raise ValueError(f"loss_type of {model} must be {' or '.join(LOSS_TYPES)}, got {final.get('loss_type')!r}")
    if softmax and not disentangled:
        raise ValueError(
            f"loss_type: {SOFTMAX} is for the models whose name ends in CD, got {model}; gamma: 0 leaves their CD term out"
        )
    if final["train_positions"] == "all":
        if getattr(model_class, "train_positions", "last") != "all":
            raise ValueError(f"{model} trains on one row per prefix, and train_positions must be last, got 'all'")
        negatives = final["train_neg_sample_args"] or {}
        allowed = ("uniform", "popularity") if softmax else ("uniform",)
        if negatives.get("distribution") not in allowed or negatives.get("sample_num") != 1 or negatives.get("dynamic"):
            raise ValueError(
                f"train_neg_sample_args: with train_positions: all and this loss_type, distribution must be {' or '.join(allowed)}, "
                f"sample_num 1 and dynamic False; got {negatives}"
            )
        if final["transform"] is not None:
            raise ValueError(f"transform works with train_positions: last only, got {final['transform']!r}")
    elif getattr(model_class, "all_positions_only", False):
        raise ValueError(
            f"{model} trains on all positions, and train_positions must be all, got {final['train_positions']!r}"
        )
