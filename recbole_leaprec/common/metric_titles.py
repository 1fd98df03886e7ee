"""The names of metrics in tables and pictures."""

TITLES = {"hit": "HR", "ndcg": "nDCG", "skl": "S_KL", "ckl": "C_KL"}


def metric_title(metric: str) -> str:
    """The name of a RecBole metric as the paper writes it.

    Example:
        >>> metric_title("skl@10")
        'S_KL@10'
    """
    name, at, k = metric.partition("@")
    return TITLES.get(name, name) + at + k
