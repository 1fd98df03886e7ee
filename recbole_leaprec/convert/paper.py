"""The paper's four datasets: their sizes, and their filters as far as these are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from recbole_leaprec.convert.filters import Filters


@dataclass(frozen=True)
class Sizes:
    """A row of the paper's Table 1."""

    users: int
    items: int
    categories: int
    interactions: int
    mean_length: float
    categories_per_item: float


TABLE_1 = {
    "ml-1m": Sizes(6_038, 3_883, 18, 575_281, 95.28, 1.6503),
    "goodreads": Sizes(16_765, 25_474, 10, 954_958, 56.96, 3.6269),
    "grocery": Sizes(54_882, 39_853, 26, 438_681, 7.99, 1.0),
    "steam": Sizes(242_223, 14_419, 22, 2_732_749, 11.29, 2.6242),
}

FILTERS = {
    # Ratings of four and above. Users with fewer than three of them are left out later, before training and test.
    "ml-1m": Filters(min_rating=4, duplicates="keep", min_user_interactions=1),
    # The authors' note: of several interactions on one day, the first is kept. The smallest length of five is a guess.
    "goodreads": Filters(one_per_day=True, min_user_interactions=5, min_item_interactions=1),
    # In the authors' test file, every user's validation item is of an earlier day, so one per day again. The smallest
    # length is a guess.
    "grocery": Filters(one_per_day=True, min_user_interactions=5, min_item_interactions=1, need_category=True),
    # The authors' note: items without a genre are dropped, and users have at least five interactions.
    "steam": Filters(min_user_interactions=5, min_item_interactions=1, need_category=True),
}
"""The paper does not give all settings. What it does not give, such as the rule for duplicates, is our default."""


def compared(paper: Sizes, here: Sizes) -> str:
    """A text table of the paper's sizes, ours, and the difference.

    Example:
        >>> print(compared(Sizes(2, 3, 4, 8, 4.0, 1.5), Sizes(2, 3, 4, 6, 3.0, 1.5)))
                                    paper         here   difference
        users                           2            2
        items                           3            3
        categories                      4            4
        interactions                    8            6           -2
        mean length                  4.00         3.00        -1.00
        categories per item        1.5000       1.5000
    """
    digits = {"mean_length": 2, "categories_per_item": 4}
    lines = [f"{'':<20} {'paper':>12} {'here':>12} {'difference':>12}"]
    for name, said in asdict(paper).items():
        got, places = asdict(here)[name], digits.get(name, 0)
        difference = "" if said == got else f"{got - said:+,.{places}f}"
        lines.append(f"{name.replace('_', ' '):<20} {said:>12,.{places}f} {got:>12,.{places}f} {difference:>12}".rstrip())
    return "\n".join(lines)
