"""The tests, laid out as the package is."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as commands set it, before torch is imported
