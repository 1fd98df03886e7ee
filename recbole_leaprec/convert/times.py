"""Reads times of many forms as epoch seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

NUMBERS = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
ISO = "iso"
DATES = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y%m%d%H%M%S",
    "%a %b %d %H:%M:%S %z %Y",
    "%m %d, %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%Y%m%d",
)
"""Forms of dates that are tried. None can be confused with another; 03/04/2020 can, so its form must be given."""

FORMS = f"{', '.join(NUMBERS)}, {ISO}, or a pattern such as %d/%m/%Y"


def guess_form(values: pa.Array) -> str | None:
    """The form that most of these times have; None if no known form fits."""
    values = values.drop_null().slice(0, 1000)
    if not len(values) or pa.types.is_temporal(values.type):
        return ISO
    if _is_number(values.type):
        return _unit(values.to_numpy(zero_copy_only=False).astype(float))
    texts = pd.Series(values.cast(pa.string()).to_pylist(), dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.notna().mean() > 0.9 and not _eight_digits(texts):
        return _unit(numbers.dropna().to_numpy())
    for form in (ISO, *DATES):
        if np.isfinite(_read_texts(texts, form)).mean() > 0.9:
            return form
    return None


def _unit(numbers: np.ndarray) -> str:
    """The unit of these times: seconds of this century have ten digits, and each smaller unit has three more."""
    size = float(np.median(np.abs(numbers)))
    return next((name for name, factor in NUMBERS.items() if size < 1e11 * factor), "nanoseconds")


def _eight_digits(texts: pd.Series) -> bool:
    """Whether most texts look like 20170830 or 20170830143000."""
    return bool(texts.str.fullmatch(r"(19|20)\d\d[01]\d[0-3]\d([0-2]\d[0-5]\d[0-5]\d)?").mean() > 0.9)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def read_times(values: pa.Array, form: str) -> np.ndarray:
    """Epoch seconds `[N]` of times in a given form; nan for a time that cannot be read.

    Example:
        >>> read_times(pa.array(["2017-08-30", "yesterday", "2017-08-30T10:00:00+02:00"]), "iso").tolist()
        [1504051200.0, nan, 1504080000.0]
        >>> read_times(pa.array([1416355200000]), "milliseconds").tolist()
        [1416355200.0]
    """
    if pa.types.is_temporal(values.type):
        stamps = pc.cast(values, pa.timestamp("us", tz=getattr(values.type, "tz", None)), safe=False)
        micros = pc.cast(stamps, pa.int64()).to_numpy(zero_copy_only=False).astype(float)
        return np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, micros / 1e6)
    if _is_number(values.type):
        texts = pd.Series(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    else:
        texts = pd.Series(values.cast(pa.string()).to_pylist(), dtype=object)
    return _read_texts(texts, form)


def _read_texts(texts: pd.Series, form: str) -> np.ndarray:
    if form in NUMBERS:
        numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float) / NUMBERS[form]
        return np.where(np.isfinite(numbers), numbers, np.nan)
    stamps = pd.to_datetime(texts, format="ISO8601" if form == ISO else form, errors="coerce", utc=True)
    seconds = stamps.astype("datetime64[us, UTC]").astype("int64").to_numpy(dtype=float) / 1e6
    return np.where(stamps.isna(), np.nan, seconds)


def check_form(form: str) -> None:
    """ValueError if the text is not a form of times."""
    if form not in NUMBERS and form != ISO and "%" not in form:
        raise ValueError(f"time_format must be {FORMS}, got {form!r}")
