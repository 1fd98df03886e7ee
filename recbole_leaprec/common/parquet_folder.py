"""Folders of Parquet files, on this machine or on any file system that pyarrow supports."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

SCHEME = "://"
SUFFIX = ".parquet"
READERS = 16
"""How many footers are read at a time: with a remote file system, most of the time is waiting."""
_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")
"""File systems where a folder is only part of a name. To make one could need rights that writing a file does not need."""


def is_folder(where: str | Path | None) -> bool:
    """Whether `where` is a folder of this machine, or an address such as s3://bucket/folder."""
    return where is not None and (SCHEME in str(where) or Path(where).is_dir())


def check_folders(engine: str, out: str | Path, **sources: str | Path | None) -> bool:
    """Whether folders are read and one is written. ValueError if only some are folders, or if the engine is not Ray.

    Args:
        sources: the inputs by the names of their options.
    """
    given = {option: where for option, where in sources.items() if where is not None}
    folders = [option for option, where in given.items() if is_folder(where)]
    if not folders:
        if is_folder(out):
            raise ValueError(
                f"{out} is a folder (--out): lists are written to one out of folders (--{', --'.join(sources)})"
            )
        return False
    if engine != "ray":
        raise ValueError(
            f"{given[folders[0]]} is a folder (--{folders[0]}), which --engine=ray reads; got the engine {engine}"
        )
    for option, where in given.items():
        if option not in folders:
            raise ValueError(f"{where} is no folder (--{option}), and --{folders[0]} is one: all must be, or none")
    return True


@dataclass(frozen=True)
class Footer:
    """The facts from the end of a Parquet file, read without its rows."""

    schema: pa.Schema
    rows: int


@dataclass(frozen=True)
class Folder:
    """A folder and the files below it. It can be sent to workers. Credentials come from the environment where it is used.

    Attributes:
        text: the folder as the user wrote it.
        path: its path in its file system.
    """

    text: str
    filesystem: pa.fs.FileSystem
    path: str

    @classmethod
    def at(cls, where: str | Path, option: str) -> Folder:
        """The folder at `where`, a path or an address. ValueError if pyarrow has no file system for it."""
        text = str(where)
        if SCHEME not in text:
            return cls(text, pa.fs.LocalFileSystem(), str(Path(text).absolute()))
        try:
            filesystem, path = pa.fs.FileSystem.from_uri(text)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{text} is no folder that pyarrow can reach (--{option}): {error}") from error
        return cls(text, filesystem, path.rstrip("/"))

    def path_of(self, name: str) -> str:
        return f"{self.path}/{name}"

    def all_files(self) -> dict[str, pa.fs.FileInfo]:
        """Every file below the folder by its name, in the order of the names; none if the folder does not exist.

        Raises:
            ValueError: the folder is a file, or cannot be listed.
        """
        try:
            if self.filesystem.get_file_info(self.path).type == pa.fs.FileType.File:
                raise ValueError(f"{self.text} is a file and no folder")
            found = self.filesystem.get_file_info(pa.fs.FileSelector(self.path, allow_not_found=True, recursive=True))
        except OSError as error:
            raise ValueError(f"{self.text} cannot be listed: {error}") from error
        skip = len(self.path) + 1
        return {info.path[skip:]: info for info in sorted(found, key=lambda one: one.path) if info.is_file}

    def files(self) -> dict[str, pa.fs.FileInfo]:
        """The files for readers, without those whose name, or whose folder's name, begins with _ or a dot."""
        return {
            name: info
            for name, info in self.all_files().items()
            if not any(part.startswith(("_", ".")) for part in name.split("/"))
        }

    def parquet_files(self, option: str) -> dict[str, pa.fs.FileInfo]:
        """The files for readers. ValueError if there are none, or if one is not Parquet by its name."""
        files = self.files()
        if not files:
            raise ValueError(f"{self.text} holds no {SUFFIX} file (--{option})")
        for name in files:
            if not name.endswith(SUFFIX):
                raise ValueError(
                    f"{self.text} holds {name}, which is no {SUFFIX} file (--{option}): take it away, or name it so that it begins with _"
                )
        return files

    def footers(self, names: Iterable[str]) -> dict[str, Footer]:
        """The footers by file name. ValueError for the first file that is not Parquet."""
        names = list(names)
        with ThreadPoolExecutor(READERS) as pool:
            return dict(zip(names, pool.map(self._footer, names), strict=True))

    def _footer(self, name: str) -> Footer:
        try:
            with self.filesystem.open_input_file(self.path_of(name)) as file:
                parquet = pa.parquet.ParquetFile(file)
                return Footer(parquet.schema_arrow, parquet.metadata.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.text}: {name} cannot be read as Parquet: {error}") from error

    def read(self, name: str) -> bytes:
        with self.filesystem.open_input_stream(self.path_of(name), compression=None) as file:
            return file.read()

    def write_whole(self, name: str, content: bytes | pa.Buffer) -> None:
        """Write a file as a whole or not at all, even if the process dies while it writes."""
        path = self.path_of(name)
        parent, _, last = path.rpartition("/")
        if self.filesystem.type_name not in _WITHOUT_FOLDERS:
            self.filesystem.create_dir(parent, recursive=True)
        scratch = f"{parent}/.{last}.{uuid.uuid4().hex}.part"  # only for this attempt: another may run
        with self.filesystem.open_output_stream(scratch, compression=None) as file:
            file.write(content)
        self.filesystem.move(scratch, path)

    def clean(self) -> None:
        """Remove the scratch files of attempts that died."""
        for name in self.all_files():
            last = name.rpartition("/")[2]
            if last.startswith(".") and last.endswith(".part"):
                self.filesystem.delete_file(self.path_of(name))


def check_alike(footers: dict[str, Footer], columns: Iterable[str], where: str) -> None:
    """Raise ValueError unless each of these columns has the same type in all files, or is missing in all."""
    (first, own), *others = footers.items()
    for name, other in others:
        for column in columns:
            kinds = [_kind(footer.schema, column) for footer in (own, other)]
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"{where}: {first} and {name} differ in the column {column!r}, which is {kinds[0]} in the one and {kinds[1]} "
                    "in the other; write them with the same columns and types"
                )


def _kind(schema: pa.Schema, column: str) -> str:
    """The type of a column in words.

    Texts and lists with 32-bit and 64-bit offsets count as the same, and the names of a list's values do not matter.
    """
    place = schema.get_field_index(column)
    if place < 0:
        return "missing"
    kind = schema.field(place).type
    if any(is_list(kind) for is_list in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
        return f"a list of {_kind(pa.schema([('', kind.value_type)]), '')}"
    return str(kind).replace("large_", "")


Check = Callable[[pa.Schema, str], None]
"""A function that checks the schema of a file. It gets the file's name for its message."""


def checked_folder(
    where: str | Path, option: str, columns: Iterable[str], check: Check
) -> tuple[Folder, dict[str, Footer], dict[str, list[int]]]:
    """A folder that is read, the footers of its files, and their sizes and times (to notice changes).

    Raises:
        ValueError: there is no Parquet file; a file cannot be read or lacks a column; the type of a column differs between
            two files; or there are no rows.
    """
    folder = Folder.at(where, option)
    files = folder.parquet_files(option)
    footers = folder.footers(files)
    for name, footer in footers.items():
        check(footer.schema, f"{folder.text}/{name}")
    check_alike(footers, columns, folder.text)
    if not any(footer.rows for footer in footers.values()):
        raise ValueError(f"the files of {folder.text} have no rows (--{option})")
    return folder, footers, {name: [info.size, info.mtime_ns] for name, info in files.items()}
