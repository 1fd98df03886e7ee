"""Reads RecBole's atomic files as text or, faster, directly as numbers and codes."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from recbole_leaprec.common.reading import reading

NO_NUMBER = ("na", "n/a", "nan", "null", "none")
"""Texts that count as an empty field where a number should be."""

TOKEN, FLOAT = "token", "float"
"""RecBole's types of fields with one name, and with one number. There are also sequences of both."""

_LOOKED_AT = 1000
"""How many rows are read to guess the format of a file."""

_BLOCK = 2**23
"""How many bytes Arrow reads at a time."""


def how_to_mend(path: str | Path, config: Any) -> str:
    """The command that makes a correct dataset from files with a mistake. It reads them as tables."""
    folder, field = Path(path).parent, config["category_field"]
    words = [
        f"--interactions={folder / folder.name}.inter",
        f"--items={folder / folder.name}.item",
        f"--out={folder}-mended",
    ]
    if field:
        words.append(f"--categories={field}")
        if _by_spaces(Path(f"{folder / folder.name}.item"), field, config):
            words.append("--category_separator= ")
    return f"To mend it: `leaprec data csv {shlex.join(words)}`"


def _by_spaces(path: Path, field: str, config: Any) -> bool:
    """Whether spaces separate categories, as in atomic files, though the file's header does not say so."""
    if not path.is_file() or field not in (columns := columns_of(path, config)):
        return False
    with open(path, encoding=config["encoding"] or "utf-8", errors="replace") as file:
        rows = [line.rstrip("\r\n").split(config["field_separator"]) for line in islice(file, 1, _LOOKED_AT)]
    texts = [row[columns.index(field)] for row in rows if len(row) == len(columns)]
    return any(" " in text for text in texts) and not any(sign in text for text in texts for sign in "|[,;")


def columns_of(path: str | Path, config: Any) -> list[str]:
    """The columns of the header, each as `<field>:<type>`."""
    told = f"a text in {config['encoding'] or 'utf-8'} (encoding)"
    with reading(path, told), open(path, encoding=config["encoding"] or "utf-8") as file:
        return file.readline().removeprefix("\ufeff").rstrip("\r\n").split(config["field_separator"])


def fields_of(path: str | Path, config: Any) -> list[str]:
    """The fields of an atomic file, in its order; ValueError if a field is there twice."""
    fields = [column.partition(":")[0] for column in columns_of(path, config)]
    for field in fields:
        if fields.count(field) > 1:
            raise ValueError(f"{path}: there are two fields {field!r} in the header")
    return fields


def read_texts(path: str | Path, config: Any, fields: Collection[str]) -> pd.DataFrame:
    """These fields of an atomic file, as text.

    Quotes are part of a text, and only empty values are missing: an item may have the name NA, and a title may begin with a
    quote.
    """
    names = fields_of(path, config)
    _check_width(path, config, len(names))
    try:
        return pd.read_csv(
            path, delimiter=config["field_separator"], encoding=config["encoding"], header=0, names=names, usecols=list(fields),
            dtype=str, quoting=csv.QUOTE_NONE, keep_default_na=False, na_values=[""],
        )  # fmt: skip
    except ValueError as error:  # pandas' parser errors are ValueErrors
        raise ValueError(
            f"{path} cannot be read with its {len(names)} fields: {error}. {how_to_mend(path, config)}"
        ) from error


def read_typed(path: str | Path, config: Any, types: Mapping[str, str]) -> pd.DataFrame:
    """Fields of an atomic file, converted by type.

    Tokens become pandas categories (which hold each name once), floats become numbers, and the rest stays text.

    Args:
        types: the type of each field: `token`, `float`, or another, which stays text.

    Raises:
        ValueError: the file does not fit its header, or a number cannot be read.
    """
    names = fields_of(path, config)
    table = _read_with_arrow(path, config, names, types)
    if table is not None:
        return pd.DataFrame({field: table[field].to_pandas() for field in types}, copy=False)
    frame = read_texts(path, config, types)
    for field, kind in types.items():
        if kind == FLOAT:
            frame[field] = _numbers(frame[field], path, field == config["TIME_FIELD"])
        elif kind == TOKEN:
            frame[field] = frame[field].astype("category")
    return frame


def _read_with_arrow(path: str | Path, config: Any, names: list[str], types: Mapping[str, str]) -> pa.Table | None:
    """These fields as a table; None if the file is not plain: rows of another width, blank lines, or words for numbers.

    pandas then reads the file, or says what is wrong.
    """
    sign = config["field_separator"]
    if len(sign) != 1 or not sign.isascii() or len(names) < 2:
        return None
    arrow = {TOKEN: pa.dictionary(pa.int32(), pa.string()), FLOAT: pa.float64()}
    try:
        table = pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(column_names=names, skip_rows=1, encoding=config["encoding"] or "utf-8", block_size=_BLOCK),
            pyarrow.csv.ParseOptions(delimiter=sign, quote_char=False, double_quote=False, escape_char=False),
            pyarrow.csv.ConvertOptions(
                column_types={field: arrow.get(kind, pa.string()) for field, kind in types.items()},
                include_columns=list(types), null_values=[""], strings_can_be_null=True,
            ),
        )  # fmt: skip
    except (pa.ArrowInvalid, UnicodeError):
        return None
    return table.unify_dictionaries()


def _numbers(column: pd.Series, path: str | Path, is_time: bool) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = numbers.isna() & column.notna() & ~column.str.strip().str.lower().isin(NO_NUMBER)
    if wrong.any():
        line = int(wrong.idxmax())
        raise ValueError(
            f"{path}: {int(wrong.sum())} values of {column.name}:float are not numbers, the first in line {line + 2} is "
            f"{column[line]!r}" + ("; write epoch seconds" if is_time else "")
        )
    return numbers


def _check_width(path: str | Path, config: Any, fields: int) -> None:
    """Raise ValueError for a row with more fields than the header: pandas would shift all its fields by one."""
    sign = config["field_separator"]
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.count(sign.encode()) >= fields:
                raise ValueError(
                    f"{path}, line {number}: {line.count(sign.encode()) + 1} fields, and the header has {fields}; does a text hold "
                    f"the sign between the fields, {sign!r} (field_separator)? {how_to_mend(path, config)}"
                )
