"""The plugin's models, one a file. A new one is imported here, and is then known by name."""

from recbole_leaprec.model.sequential_recommender.sasreccd import SASRecCD

__all__ = ["SASRecCD"]
