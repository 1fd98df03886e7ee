"""The plugin's metrics, one idea per file. A new one is imported here, and is then known by its name in small letters."""

from recbole_leaprec.evaluator.metrics.calibration import CKL, SKL
