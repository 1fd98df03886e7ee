"""The log of a run: on the terminal, and in a file of its folder."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recbole.utils.logger import RemoveColorFilter
from tqdm import tqdm

from recbole_leaprec.common.files import taken

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig

PACKAGE_LOGGER = "recbole_leaprec"


class _TqdmHandler(logging.StreamHandler):
    """Writes above a progress bar, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


class RunLog:
    """The log of a run: at once on the terminal, and in a file as soon as the run has a folder."""

    def __init__(self, held: logging.handlers.MemoryHandler):
        self._held = held
        self._file: logging.FileHandler | None = None
        self._folder = ExitStack()

    def take(self, folder: Path) -> None:
        """Lock the run's folder until the log is closed; ValueError if another process has locked it."""
        self._folder.enter_context(taken(folder))

    def write_to(self, path: Path) -> None:
        self._file = logging.FileHandler(path, encoding="utf-8")
        self._file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s  %(message)s"))
        self._file.addFilter(RemoveColorFilter())
        self._held.setTarget(self._file)
        self._held.flush()

    def keep(self, error: Exception) -> None:
        """Write the traceback of the error that ended the run to the log file, if there is one. Add a note with its path."""
        if self._file:
            trace = (type(error), error, error.__traceback__)
            self._file.handle(logging.LogRecord(PACKAGE_LOGGER, logging.ERROR, __file__, 0, "the run ended here", (), trace))
            error.add_note(f"the traceback is in {self._file.baseFilename}")

    def close(self) -> None:
        self._held.close()
        if self._file:
            self._file.close()
        self._folder.close()


@contextmanager
def run_log(config: LeapRecConfig) -> Iterator[RunLog]:
    """Log a run. The terminal shows the plugin's lines and RecBole's warnings; without progress bars, it shows all lines."""
    root = logging.getLogger()
    level = getattr(logging, str(config["state"] or "INFO").upper(), logging.INFO)
    terminal = _TqdmHandler()
    terminal.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    if config["show_progress"] and level != logging.DEBUG:
        terminal.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.startswith(PACKAGE_LOGGER))
    held = logging.handlers.MemoryHandler(capacity=1, flushLevel=logging.DEBUG)
    handlers, before = (terminal, held), root.level
    root.setLevel(level)
    for handler in handlers:
        handler.setLevel(level)
        root.addHandler(handler)
    log = RunLog(held)
    try:
        yield log
    except Exception as error:
        log.keep(error)
        raise
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        log.close()
        root.setLevel(before)
