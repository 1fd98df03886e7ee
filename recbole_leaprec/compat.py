"""What RecBole 1.2 needs to run right on current packages, with the reason beside each piece.

Pieces that name numpy 2, pandas 3 or torch 2 can go when RecBole catches up with that package; the others mend what RecBole
does on any version. All but five are subclasses: numpy gets back a name, torch's anomaly detection is switched off again,
a warning is filtered, `get_tensorboard` is replaced while a trainer is made, and `lighter_recbole` has scikit-learn loaded
when it is called.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import recbole_leaprec.lighter_recbole  # isort: skip  # noqa: F401, before anything of RecBole's

import numpy as np
import pandas as pd
import recbole.model.sequential_recommender  # noqa: F401, anomaly detection: below
import recbole.trainer.trainer as recbole_trainer
import torch
from recbole.config import Config
from recbole.data.dataset import Dataset, SequentialDataset
from recbole.trainer import Trainer
from recbole.utils import FeatureSource, FeatureType
from recbole.utils.url import decide_download, download_url, extract_zip, rename_atomic_files
from torch.utils.tensorboard import SummaryWriter

from recbole_leaprec.atomic_files import columns_of, fields_of, how_to_mend, read_typed
from recbole_leaprec.lighter_optimizer import OPTIMIZERS, lighter
from recbole_leaprec.settings.recbole_keys import recbole_folder

RECBOLE_PROPERTIES = recbole_folder() / "properties"

# Any version: RecBole's SINE module switches anomaly detection on when it is imported, for every model and every step after it.
# Its models are imported above, so that it has done so by now.
torch.autograd.set_detect_anomaly(False)
# torch 2.4: RecBole's training loop makes its GradScaler by a name that torch has renamed; the warning would land in a progress bar.
warnings.filterwarnings("ignore", message=r".*GradScaler.*is deprecated", category=FutureWarning, module=r"recbole\..*")


class CompatConfig(Config):
    """RecBole's config on numpy 2, without a look at the command line of whatever program is running, or a hand on its GPUs."""

    def compatibility_settings(self):
        # numpy 2: RecBole's metrics and interactions read np.float at run time, and its own way of providing that reads
        # np.float_, which is gone. The other names that it reads (np.bool, np.long) are there again.
        np.float = np.float64  # type: ignore[attr-defined]  # that it is not there is why

    def _load_cmd_line(self):
        # Any version: RecBole parses sys.argv inside Config, which is wrong in a library call, a test or a Ray worker.
        return {}

    def _load_variable_config_dict(self, config_dict):
        # Any version: RecBole runs eval() on every string. Values that come from Python have their types already.
        return dict(config_dict or {})

    def _init_device(self):
        # Any version: RecBole sets CUDA_VISIBLE_DEVICES to gpu_id, also to its default, where the shell or Ray has said which
        # GPUs there are; and it does not read use_gpu.
        final, variable = self.final_config_dict, "CUDA_VISIBLE_DEVICES"
        before, asked = os.environ.get(variable), "gpu_id" in self.external_config_dict
        if final["use_gpu"] is False:
            final["gpu_id"] = ""
        elif not asked and before is not None:
            final["gpu_id"] = before
        super()._init_device()
        if not asked or final["gpu_id"] == "":  # a GPU that is asked for by its number must stay the one that CUDA sees
            os.environ.pop(variable)
            if before is not None:
                os.environ[variable] = before


class TokenIds(Mapping[str, int]):
    """The id of each token of a field. Few ask, so the table is made when the first does: of millions of users it is large."""

    def __init__(self, tokens: np.ndarray):
        self._tokens = tokens

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self._tokens.tolist())}

    def __getitem__(self, token: str) -> int:
        return self._ids[token]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._tokens)


class CompatDataset(SequentialDataset):
    """RecBole's sequential dataset on pandas 3, with ties of time in file order."""

    inter_feat: Any
    user_feat: Any
    """Tables while the dataset is read, RecBole's Interactions from `_change_feat_format` on."""

    def _load_feat(self, filepath, source):
        # pandas 3: RecBole fills missing sequences by a chained fillna(inplace=True), which is ignored. Any version: it reads
        # with the Python engine, which takes many times as long, and keeps a Python text for every token.
        load, unload = self._get_load_and_unload_col(source)
        types = {}
        for column in columns_of(filepath, self.config):
            field, colon, kind = column.partition(":")
            if not colon or kind not in {t.value for t in FeatureType}:
                raise ValueError(
                    f"{filepath}, line 1: column {column!r} of the header is not <field>:<type>, "
                    f"with a type of {', '.join(t.value for t in FeatureType)}"
                    + ("; are there tabs between the columns (field_separator)?" if "," in column else "")
                    + f". {how_to_mend(filepath, self.config)}"
                )
            if (load is None or field in load) and (unload is None or field not in unload):
                types[field] = FeatureType(kind)
        if not types:
            return None
        frame = read_typed(filepath, self.config, {field: kind.value for field, kind in types.items()})
        for field, kind in types.items():
            self.field2source[field], self.field2type[field], self.field2seqlen[field] = source, kind, 1
            if kind in (FeatureType.FLOAT, FeatureType.FLOAT_SEQ):
                self.field2bucketnum[field] = 2
            if kind in (FeatureType.TOKEN_SEQ, FeatureType.FLOAT_SEQ):
                frame[field] = self._split_sequences(frame[field], kind)
                longest = max(map(len, frame[field]), default=0)
                self.field2seqlen[field] = min((self.config["seq_len"] or {}).get(field, longest), longest)
        return frame

    def _load_user_or_item_feat(self, token, dataset_path, source, field_name):
        # Any version: RecBole names neither the file nor its key where the field of the ids is missing, and drops rows of ids
        # that come again without a word.
        path, field = Path(dataset_path) / f"{token}.{source.value}", getattr(self, field_name)
        feat = self._load_feat(path, source) if path.is_file() else None
        if feat is not None:
            if field not in feat:
                fields = fields_of(path, self.config)
                told = "load_col leaves it out" if field in fields else f"its fields are {', '.join(fields)}"
                raise ValueError(f"{path} has no field {field!r} ({source.value.upper()}_ID_FIELD); {told}")
            again = feat[field].duplicated() & feat[field].notna()
            if again.any():
                self.logger.warning(
                    f"{path}: {int(again.sum())} rows are of {source.value}s that have one already, the first is "
                    f"{feat[field][again.idxmax()]!r}: the first row of each counts"
                )
            feat = feat[~again]
        if field in self.field2source:
            self.field2source[field] = FeatureSource(f"{source.value}_id")
        return feat

    def _filter_nan_user_or_item(self):
        # Any version: RecBole takes the labels of rows for their places, which differ once a row has been dropped.
        fields = {self.uid_field: "user", self.iid_field: "item"}
        tables = {"inter_feat": list(fields)} | {f"{kind}_feat": [field] for field, kind in fields.items()}
        for name, needed in tables.items():
            feat = getattr(self, name)
            if feat is None:
                continue
            whole = feat[needed].notna().all(axis=1)
            if not whole.all():
                self.logger.warning(
                    f"dropped {int((~whole).sum())} rows of {self.dataset_name}.{name.removesuffix('_feat')} without "
                    f"{' or '.join(needed)}, the first in line {int((~whole).idxmax()) + 2}"
                )
                setattr(self, name, feat[whole])

    def _split_sequences(self, column, kind):
        dtype = np.float64 if kind == FeatureType.FLOAT_SEQ else object
        separator, longest = self.config["seq_separator"], (self.config["seq_len"] or {}).get(column.name)
        rows = [[part for part in text.split(separator) if part][:longest] for text in column.fillna("")]
        return pd.Series([np.array(row, dtype=dtype) for row in rows], index=column.index, dtype=object)

    def _remap(self, remap_list):
        # pandas 3: RecBole counts sequences with Series.agg(len), which gives the length of the Series. Any version: it goes
        # through a Python text for every token, where codes of the texts that there are will do.
        if not remap_list:
            return
        coded = [_codes(feat[field], kind) for feat, field, kind in remap_list]
        common, texts = pd.factorize(np.concatenate([names for _, names in coded]))
        parts, begin = [], 0
        for codes, names in coded:
            parts.append(np.append(common[begin : begin + len(names)], -1)[codes])  # the code of what is missing is -1
            begin += len(names)
        numbered = np.concatenate(parts)
        known = numbered >= 0
        ids = np.zeros(len(numbered), dtype=np.int64)
        new, order = pd.factorize(numbered[known])  # in the order in which they come
        ids[known] = new + 1
        tokens = np.array(["[PAD]", *texts[order]])
        token_ids = TokenIds(tokens)
        for (feat, field, kind), part in zip(
            remap_list, np.split(ids, np.cumsum([len(part) for part in parts])[:-1]), strict=True
        ):
            self.field2id_token.setdefault(field, tokens)
            self.field2token_id.setdefault(field, token_ids)
            if kind == FeatureType.TOKEN_SEQ:
                lengths = [len(row) for row in feat[field]]
                feat[field] = pd.Series(np.split(part, np.cumsum(lengths)[:-1]), index=feat.index, dtype=object)
            else:
                feat[field] = part

    def _fill_nan(self):
        # pandas 3: chained fillna(inplace=True) again; it would leave NaN ids, which become -9223372036854775808.
        for feat_name in self.feat_name_list:
            feat = getattr(self, feat_name)
            for field in feat:
                kind = self.field2type[field]
                if kind == FeatureType.TOKEN:
                    feat[field] = feat[field].fillna(0).astype(np.int64)
                elif kind == FeatureType.FLOAT:
                    feat[field] = feat[field].fillna(feat[field].mean())
                else:
                    empty = np.array([], dtype=np.int64 if kind == FeatureType.TOKEN_SEQ else np.float64)
                    rows = [empty if isinstance(row, float) else row for row in feat[field]]
                    feat[field] = pd.Series(rows, index=feat.index, dtype=object)

    def _dataframe_to_interaction(self, data):
        # pandas 3: the values of a column are read-only, and torch warns when RecBole makes tensors that share them.
        return super()._dataframe_to_interaction({field: SimpleNamespace(values=np.array(data[field])) for field in data})

    def _remove_duplication(self):
        # Any version: RecBole sorts by time with an unstable sort before it drops duplicates: ties would lose the file's order.
        keep = self.config["rm_dup_inter"]
        if keep is not None:
            ordered = self.inter_feat.sort_values(self.time_field, kind="stable")
            self.inter_feat = ordered.drop_duplicates([self.uid_field, self.iid_field], keep=keep)

    def _change_feat_format(self):
        # Any version: past SequentialDataset, which would copy one padded row per prefix.
        Dataset._change_feat_format(self)

    def _download(self):
        # Any version: RecBole waits at a torch.distributed barrier after the download, also where nothing is distributed. And a
        # download that stops half-way must not leave a folder that the next run takes for the dataset.
        url, target = self._get_download_url("url"), Path(self.dataset_path)
        with tempfile.TemporaryDirectory() as scratch:
            try:
                if not decide_download(url):
                    raise ValueError(f"dataset {self.dataset_name!r} was not downloaded")
                archive = Path(download_url(url, scratch))
                files = archive.with_name("files")
                extract_zip(str(archive), str(files))
            except (OSError, RuntimeError, zipfile.BadZipFile) as error:
                if isinstance(error, HTTPError):
                    error.close()  # it holds the server's answer open, and Python 3.14 warns about that
                raise ValueError(
                    f"dataset {self.dataset_name!r} is not in {target.parent} and could not be downloaded from {url}: "
                    f"{error}. Put {self.dataset_name}.inter and {self.dataset_name}.item into {target}, "
                    f"or say where they are with --data_path"
                ) from error
            rename_atomic_files(str(files), archive.stem, self.dataset_name)
            target.parent.mkdir(parents=True, exist_ok=True)
            # The temporary folder may be on another disk, and another run may be downloading the same.
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as part:
                shutil.copytree(files, Path(part) / target.name)
                try:
                    (Path(part) / target.name).replace(target)
                except OSError:
                    if not target.is_dir():  # it is, where the other one was first
                        raise


def _codes(column: pd.Series, kind: FeatureType) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a column one after the other, as places among the texts `[.]` that it has; -1 where one is missing."""
    if kind == FeatureType.TOKEN_SEQ:
        return pd.factorize(np.concatenate([*column, []]).astype(object))
    return column.cat.codes.to_numpy(), column.cat.categories.to_numpy(dtype=object)


class TensorBoard:
    """A writer that begins its file, and the thread that writes it, with the first value: an evaluation has none."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def __getattr__(self, name: str) -> Any:
        if self._writer is None:
            self._writer = SummaryWriter(str(self._folder))
        return getattr(self._writer, name)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class CompatTrainer(Trainer):
    """RecBole's trainer with its TensorBoard files in the run's folder, closed when training is done, and a lighter optimizer."""

    def __init__(self, config, model):
        with _tensorboard_in(Path(config["output_dir"]) / "tensorboard"):
            super().__init__(config, model)

    def _build_optimizer(self):
        """RecBole's, by the same keys, but without loading torch's compiler."""
        if self.config["reg_weight"] and self.weight_decay:
            self.logger.warning("weight_decay and reg_weight both regularize, and this model adds up the two")
        optimizer = lighter(OPTIMIZERS[self.learner.lower()])
        return optimizer(self.model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

    def fit(self, *arguments, **more):
        try:
            return super().fit(*arguments, **more)
        finally:
            self.tensorboard.close()


@contextlib.contextmanager
def _tensorboard_in(folder: Path) -> Iterator[None]:
    """Any version: RecBole's trainer opens its writer in ./log_tensorboard, under the name of the log file: one for all our runs."""
    original = recbole_trainer.get_tensorboard
    recbole_trainer.get_tensorboard = lambda logger: TensorBoard(folder)
    try:
        yield
    finally:
        recbole_trainer.get_tensorboard = original
