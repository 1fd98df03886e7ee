"""The plugin's metrics, one idea per file. To add one, import it here; it is then known by its name in lower case."""

from recbole_leaprec.evaluator.metrics.calibration import CKL, SKL
