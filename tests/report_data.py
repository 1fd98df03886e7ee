"""Figures of a report as the command would fill them in: made up, always the same, with lists that are really reranked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CATEGORIES = ["Action", "Comedy", "Crime", "Documentary", "Drama", "Horror", "Romance", "Sci-Fi"]
LAMBDAS = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0]
K = 10
WEIGHTS = {  # of calibration at place k
    "LeapRec": lambda lam, k: lam ** (1 / k),
    "CaliRec": lambda lam, k: lam,
    "PR-reverse": lambda lam, k: lam**k,
}
BASES = {
    "SASRecCD": {"hit": 0.1412, "ndcg": 0.0671, "skl": 1.042, "ckl": 0.966},
    "SASRec": {"hit": 0.1373, "ndcg": 0.0648, "skl": 1.1033, "ckl": 1.0127},
}
METHODS = [  # name, group, model, reranker, how much nDCG it loses on the way to lambda 1, how fast S_KL falls
    ("LeapRec", "method", "SASRecCD", "leaprec", 0.25, 4.5),
    ("CaliRec", "method", "SASRec", "calirec", 0.5, 2.6),
    ("CaliRec+", "method", "SASRec", "calirec_plus", 0.42, 3.4),
    ("MCF", "method", "SASRec", "mcf", 0.62, 2.0),
    ("only BPR", "ablation", "SASRec", "leaprec", 0.34, 4.2),
    ("PR-reverse", "ablation", "SASRecCD", "pr_reverse", 0.38, 2.9),
]


def report_data() -> dict[str, Any]:
    """All sections of the page: four methods, two ablations, six users."""
    methods = [_method(*row) for row in METHODS]
    items, explorer = _explorer()
    return {
        "title": "Calibrated lists on ml-100k",
        "made": "2025-01-31 12:00",
        "versions": {"recbole-leaprec": "0.1.0", "recbole": "1.2.1", "torch": "2.13.0"},
        "k": K,
        "dataset": {"name": "ml-100k", "users": 942, "items": 1447, "interactions": 55375, "categories": CATEGORIES},
        "methods": methods,
        "reference": "LeapRec",
        "references": [{"name": "LeapRec", "methods": [method["name"] for method in methods[1:]]}],
        "comparisons": _comparisons(methods),
        "times": [
            {"method": "LeapRec", "reranker": "leaprec", "training": 61.3, "reranking": 0.42, "lambdas": 8,
             "complexity": "O(n k m)", "here": "O(n + k f m)"},
            {"method": "CaliRec", "reranker": "calirec", "training": 58.9, "reranking": 0.44, "lambdas": 8,
             "complexity": "O(n k m)", "here": "O(n + k f m)"},
            {"method": "MCF", "reranker": "mcf", "training": None, "reranking": 1293.7, "lambdas": 1,
             "complexity": "O(n k m log n)", "here": "O(n log n + k^3)"},
        ],
        "density": _density(methods),
        "shift": {"window": 20, "points": [
            {"interval": step, "kl": 0.21 + 0.32 * (1 - math.exp(-step / 60)), "users": 610 - 2 * step} for step in range(0, 201, 20)
        ]},
        "items": items,
        "explorer": explorer,
    }  # fmt: skip


BACKBONES = ("SASRec", "GRU4Rec")


def two_backbones() -> dict[str, Any]:
    """A study's figures with a reference for each backbone, and DACSR, which has none and is held against both.

    At S_KL 0.3, SASRec's reference has the higher nDCG against one method of two, GRU4Rec's against both.
    """
    of_each = [row for row in METHODS if row[0] in ("LeapRec", "CaliRec", "only BPR")]
    methods = [
        {**_method(f"{backbone} {name}", group, model, *rest), "model": model.replace("SASRec", backbone)}
        for name, group, model, *rest in of_each
        for backbone in BACKBONES
    ]
    dacsr = _method("DACSR", "method", "SASRec", "none", 0, 0)
    methods.append({**dacsr, "model": "DACSR", "points": dacsr["points"][:1]})
    values = {"SASRec LeapRec": 0.066, "SASRec CaliRec": 0.06, "SASRec only BPR": 0.062, "DACSR": 0.067,
              "GRU4Rec LeapRec": 0.068, "GRU4Rec CaliRec": 0.064, "GRU4Rec only BPR": 0.065}  # fmt: skip
    references = [{"name": f"{own} LeapRec", "methods": [f"{own} CaliRec", f"{own} only BPR", "DACSR"]} for own in BACKBONES]
    groups = {method["name"]: method["group"] for method in methods}
    comparisons = [
        {"method": name, "group": groups[name], "reference": one["name"], "skl": skl, "metric": metric, "value": values[name],
         "reference_value": values[one["name"]], "p": 0.001, "p_holm": 0.01}
        for one in references for skl in (0.5, 0.3) for name in one["methods"] for metric in ("ndcg", "hit")
    ]  # fmt: skip
    times = [{"method": method["name"], "reranker": method["reranker"], "reranking": 0.4} for method in methods]
    return {
        "title": "Two backbones", "k": K, "methods": methods, "reference": references[0]["name"], "references": references,
        "comparisons": comparisons, "times": times,
    }  # fmt: skip


def _method(name: str, group: str, model: str, reranker: str, loss: float, fall: float) -> dict[str, Any]:
    base = BASES[model]
    points = []
    for lam in LAMBDAS:
        point = {"lambda": lam, "seconds": 0.4 + 0.1 * lam}
        gain = 1 + 0.4 * lam * (1 - lam) - loss * lam**2
        for metric, factor in (
            ("hit", gain),
            ("ndcg", gain),
            ("skl", math.exp(-fall * lam)),
            ("ckl", math.exp(-0.7 * fall * lam)),
        ):
            point[metric] = base[metric] * factor
            point |= (
                {f"{metric}_low": 0.91 * point[metric], f"{metric}_high": 1.09 * point[metric]} if metric != "ckl" else {}
            )
        points.append(point)
    return {"name": name, "group": group, "model": model, "reranker": reranker, "seeds": 1, "points": points, "base": base}


def _comparisons(methods: list[dict]) -> list[dict]:
    """Values read off the curves at the same S_KL, with p that are small where the difference is large."""
    rows = []
    curves = {method["name"]: sorted(method["points"], key=lambda point: point["skl"]) for method in methods}
    for method in methods[1:]:
        for skl in (0.15, 0.3, 0.5):
            for metric in ("ndcg", "hit"):
                value, reference = (
                    float(
                        np.interp(skl, [point["skl"] for point in curves[name]], [point[metric] for point in curves[name]])
                    )
                    for name in (method["name"], "LeapRec")
                )
                p = math.exp(-60 * abs(value / reference - 1))
                rows.append({"method": method["name"], "group": method["group"], "reference": "LeapRec", "skl": skl,
                             "metric": metric, "value": value, "reference_value": reference, "p": p, "p_holm": min(1.0, 5 * p)})  # fmt: skip
    return rows


def _density(methods: list[dict]) -> dict[str, Any]:
    """Log-normal curves around the mean of each point."""
    grid = [step / 40 for step in range(1, 121)]

    def curve(mean: float) -> list[float]:
        return [math.exp(-((math.log(x / mean) + 0.18) ** 2) / 0.72) / (x * 0.6 * math.sqrt(2 * math.pi)) for x in grid]

    rows = [method for method in methods if method["group"] == "method"]
    return {
        "grid": grid,
        "methods": [
            {"name": method["name"], "lambdas": LAMBDAS, "ndcg": [point["ndcg"] for point in method["points"]],
             "skl": [point["skl"] for point in method["points"]], "curves": [curve(point["skl"]) for point in method["points"]]}
            for method in rows
        ],
    }  # fmt: skip


def s_kl(p: np.ndarray, q: np.ndarray, beta: float = 0.01) -> np.ndarray:
    """Eq. 4 of the paper, for each row of q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * np.log(p / ((1 - beta) * q + beta * p)), 0).sum(axis=-1)


def _explorer() -> tuple[dict, dict]:
    draw = np.random.default_rng(2020)
    own = [sorted(draw.choice(len(CATEGORIES), draw.choice([1, 1, 2, 3]), replace=False).tolist()) for _ in range(80)]
    own[7] = []  # one item has no category
    first = ["Silent", "Last", "Golden", "Lost", "Winter", "Paper", "Second", "Blue", "Iron", "Distant"]
    second = ["River", "Harbour", "Letter", "Garden", "Circus", "Orchard", "Station", "Mirror"]
    items = {
        str(i + 1): {"name": f"{first[i % 10]} {second[i // 10]} ({1960 + 37 * i % 40})", "categories": own[i]}
        for i in range(80)
    }
    mixes = np.array([[1 / len(o) if c in o else 0.0 if o else 1 / 8 for c in range(8)] for o in own])
    users = [_user(name, mixes, draw) for name in ("196", "22", "244", "305", "6", "115")]
    return items, {"methods": [{"name": name, "lambdas": LAMBDAS} for name in WEIGHTS], "users": users}


def _user(name: str, mixes: np.ndarray, draw: np.random.Generator) -> dict[str, Any]:
    taste = draw.dirichlet(np.full(8, 0.5))
    length = int(draw.integers(6, 30))
    history = draw.choice(80, length, replace=False, p=(chances := mixes @ taste + 0.01) / chances.sum())
    decay = 0.9 ** np.arange(length - 1, -1, -1)
    p = decay @ mixes[history] / decay.sum()
    scores = 3 * mixes @ taste + draw.normal(size=80)
    scores[history] = -np.inf
    ranking = np.argsort(-scores)
    user = {
        "user": name, "history": (history[-20:] + 1).tolist(), "history_length": length, "preference": p.tolist(),
        "target": int(ranking[4]) + 1, "lists": {}, "skl": {}, "rank": {},
    }  # fmt: skip
    for method, weight in WEIGHTS.items():
        lists = [_rerank(scores, p, mixes, lam, weight) for lam in LAMBDAS]
        user["lists"][method] = [[i + 1 for i in row] for row in lists]
        user["skl"][method] = [float(s_kl(p, mixes[row].mean(axis=0))) for row in lists]
        user["rank"][method] = {
            str(i + 1): int(np.flatnonzero(ranking == i)[0]) + 1 for i in sorted({i for row in lists for i in row})
        }
    return user


def _rerank(scores: np.ndarray, p: np.ndarray, mixes: np.ndarray, lam: float, weight: Any) -> list[int]:
    """Greedy: at each place the item with the best of relevance and calibration."""
    picked: list[int] = []
    for k in range(1, K + 1):
        w = weight(lam, k) if lam else 0.0
        value = (1 - w) * np.where(np.isinf(scores), -1e9, scores)
        value -= w * s_kl(p, (mixes[picked].sum(axis=0) + mixes) / k)
        value[np.isinf(scores)] = -np.inf
        value[picked] = -np.inf
        picked.append(int(value.argmax()))
    return picked
