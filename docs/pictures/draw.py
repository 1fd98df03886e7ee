"""Draw the pictures of the site from a run on ml-100k: `leaprec --output_dir=output/pictures`, then `python docs/pictures/draw.py output/pictures`.

The user is the one whose plain list has the S_KL nearest to the mean of all users.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch
from torch import Tensor

from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.data import create_dataset
from recbole_leaprec.recommend import Recommender
from recbole_leaprec.recommend.histories import of_dataset
from recbole_leaprec.reranking.registry import RERANKERS
from recbole_leaprec.reranking.reranking import Reranking

HERE = Path(__file__).resolve().parent
K = 10
LAMBDAS = {
    "setwise": 0.1,
    "setwise_raw": 0.9,
    "calirec": 0.9,
    "calirec_plus": 0.9,
    "pr_reverse": 0.9,
    "mip": 0.9,
    "mcf": 0.9,
}
"""Where 0.3, the default, would show little: lambda means something else for each method."""

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988"]
OTHERS = "#bbbbbb"
STYLE = {"svg.hashsalt": "leaprec", "svg.fonttype": "path", "font.size": 11}


@dataclass(frozen=True)
class Case:
    """One user: the preference, the scores of all items, and the categories that get a colour, the most wanted first."""

    model: Recommender
    user: str
    scores: Tensor
    p: Tensor
    static: Tensor
    shown: list[int]

    def made_by(self, method: str, lam: float) -> Tensor:
        """The list of a reranker, `[K]`."""
        to = self.static if RERANKERS[method].preference == "static" else self.p
        return Reranking(method, lam).lists(self.scores, to, self.model.categories, K, self.model.config["beta"])[0, 0]

    def mix(self, items: Tensor) -> Tensor:
        """The category mix of a list, `[C]`."""
        return self.model.categories.shares(items).double().mean(0)

    def skl(self, items: Tensor) -> float:
        return float(miscalibration(self.p, items[None], self.model.categories, self.model.config["beta"]))

    def colour(self, category: int) -> str:
        return COLOURS[self.shown.index(category)] if category in self.shown else OTHERS

    def first_category(self, item: int) -> int:
        """The one that the user wants most among the item's own."""
        own = self.model.categories.shares(torch.tensor([item]))[0]
        return int(torch.where(own > 0, self.p[0], -1.0).argmax())


def find_case(checkpoint: Path) -> Case:
    model = Recommender(checkpoint, {"reranker": "none"})
    dataset = create_dataset(model.config)
    dataset.build()
    frames = [(frame, model(frame)) for frame in of_dataset(dataset, 512)]
    skl = {user: value for _, lists in frames for user, value in zip(lists["user"], lists["skl"], strict=True)}
    mean = sum(skl.values()) / len(skl)
    user = min(skl, key=lambda one: abs(skl[one] - mean))
    items = next(
        row.items_
        for frame, _ in frames
        for row in frame.rename(columns={"items": "items_"}).itertuples()
        if row.user == user
    )
    history = [model.ids(items)]
    p, static = model.preferences(history, Reranking("calirec", 0.9))
    return Case(
        model, user, model.scores([user], history, [[]]), p, static, p[0].argsort(descending=True)[: len(COLOURS)].tolist()
    )


def draw_bar(
    panel: Axes, case: Case, mix: Tensor, at: float, height: float = 0.6, left: float = 0.0, width: float = 1.0
) -> None:
    """One stacked bar of a category mix, with the share in each part that has room."""
    parts = [(case.colour(c), float(mix[c])) for c in case.shown]
    parts.append((OTHERS, 1 - sum(share for _, share in parts)))
    span = max(1.0, left + width)  # how wide the picture is, in the same units
    for colour, share in parts:
        panel.barh(at, share * width, height, left=left, color=colour, edgecolor="white")
        if share * width / span >= 0.08:
            panel.text(left + share * width / 2, at, f"{100 * share:.0f} %", ha="center", va="center", fontsize=9)
        left += share * width


def legend(figure: Figure, case: Case) -> None:
    names = [Patch(color=case.colour(c), label=case.model.categories.names[c]) for c in case.shown]
    figure.legend(
        handles=[*names, Patch(color=OTHERS, label="others")],
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=10,
    )


def draw_mix(case: Case) -> Figure:
    plain, calibrated = case.made_by("none", 0.0), case.made_by("leaprec", 0.3)
    rows = [
        ("recent history", case.p[0].double()),
        (f"plain list\nS_KL {case.skl(plain):.2f}", case.mix(plain)),
        (f"calibrated list\nS_KL {case.skl(calibrated):.2f}", case.mix(calibrated)),
    ]
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    panel = figure.subplots()
    for at, (_, mix) in enumerate(rows):
        draw_bar(panel, case, mix, -at)
    panel.set(yticks=[0, -1, -2], yticklabels=[name for name, _ in rows], xlim=(0, 1), xticks=[])
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
    legend(figure, case)
    return figure


def draw_rerankers(case: Case) -> Figure:
    figure = Figure(figsize=(6.4, 7), layout="constrained")
    panel = figure.subplots()
    names = ["preference"]
    draw_bar(panel, case, case.p[0].double(), 0, left=K + 0.5, width=9)
    for at, method in enumerate(RERANKERS, 1):
        lam = 0.0 if method == "none" else LAMBDAS.get(method, 0.3)
        items = case.made_by(method, lam)
        for place, item in enumerate(items.tolist()):
            panel.barh(-at, 0.86, 0.6, left=place, color=case.colour(case.first_category(item)))
        draw_bar(panel, case, case.mix(items), -at, left=K + 0.5, width=9)
        names.append(f"{method}, {lam:g}\nS_KL {case.skl(items):.2f}" if lam else f"{method}\nS_KL {case.skl(items):.2f}")
    panel.text(K / 2, 0, "list, first to last", ha="center", va="center", fontsize=10)
    panel.set(yticks=[-at for at in range(len(names))], yticklabels=names, xticks=[], xlim=(0, K + 9.5))
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
    legend(figure, case)
    return figure


def draw_weights(lam: float = 0.3) -> Figure:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    panel = figure.subplots()
    places = range(1, K + 1)
    panel.plot(places, [lam ** (1 / k) for k in places], "o-", label="leaprec: lambda^(1/k)")
    panel.plot(places, [lam for _ in places], "s-", label="calirec, calirec_plus: lambda")
    panel.plot(places, [lam**k for k in places], "^-", label="pr_reverse: lambda^k")
    panel.set(xlabel="place in the list, k", ylabel="weight on calibration", ylim=(0, 1), xticks=list(places))
    panel.legend(frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    return figure


BOXES = [
    ("tables of events\nand items", "convert/", 0, 0),
    ("atomic files", "dataset/", 1, 0),
    ("sequences,\nbatches", "data/", 2, 0),
    ("scores, loss", "model/, core/", 3, 0),
    ("preferences", "core/preference", 2, 1),
    ("lists", "reranking/", 3, 1),
    ("candidates of\nany recommender", "recommend/", 1, 1),
    ("metrics", "evaluator/", 2, 2),
    ("curves, studies,\nthe report", "analysis/, study/, page/", 1, 2),
    ("files of lists,\na service", "recommend/, serve/", 3, 2),
]
ARROWS = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (6, 4), (5, 7), (7, 8), (5, 9)]


def draw_architecture() -> Figure:
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panel = figure.subplots()
    wide, high = 0.8, 0.56
    for name, folder, x, y in BOXES:
        panel.add_patch(
            FancyBboxPatch(
                (x - wide / 2, -y - high / 2),
                wide,
                high,
                boxstyle="round,pad=0,rounding_size=0.06",
                fc="#e8f0fa",
                ec="#1f5fa8",
            )
        )
        panel.text(x, -y + 0.07, name, ha="center", va="center", fontsize=10)
        panel.text(x, -y - 0.2, folder, ha="center", va="center", fontsize=8, family="monospace", color="#1f5fa8")
    for begin, end in ARROWS:
        (x0, y0), (x1, y1) = BOXES[begin][2:], BOXES[end][2:]
        sideways = y0 == y1
        sign = 1 if x1 > x0 else -1
        start = (x0 + sign * wide / 2, -y0) if sideways else (x0, -y0 - high / 2)
        stop = (x1 - sign * wide / 2, -y1) if sideways else (x1, -y1 + high / 2)
        panel.annotate("", stop, start, arrowprops={"arrowstyle": "-|>", "color": "#444444", "shrinkA": 1, "shrinkB": 1})
    panel.set(xlim=(-0.5, 3.5), ylim=(-2.4, 0.4))
    panel.axis("off")
    return figure


def main(folder: str) -> None:
    case = find_case(Path(folder) / "model.pth")
    print(f"user {case.user}")
    with rc_context(STYLE):
        figures = {
            "mix": draw_mix(case),
            "rerankers": draw_rerankers(case),
            "weights": draw_weights(),
            "architecture": draw_architecture(),
        }
        for name, figure in figures.items():
            figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
            print(HERE / f"{name}.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
