"""A whole experiment from one file: train, rerank in every way, compare, and draw."""

from recbole_leaprec.study.run import study

__all__ = ["study"]
