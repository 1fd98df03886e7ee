"""What tables and pictures call the metrics."""

TITLES = {"hit": "HR", "ndcg": "nDCG", "skl": "S_KL", "ckl": "C_KL"}


def metric_title(metric: str) -> str:
    """A metric of RecBole's as the paper writes it.

    Example:
        >>> metric_title("skl@10")
        'S_KL@10'
    """
    name, at, k = metric.partition("@")
    return TITLES.get(name, name) + at + k
