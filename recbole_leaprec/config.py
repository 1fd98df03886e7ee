"""The configuration: RecBole's, with the plugin's properties and with checks. The user's files and command line win."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from recbole_leaprec.compat import CompatConfig
from recbole_leaprec.config_checks import check_evaluation, check_training, metric_names
from recbole_leaprec.evaluator import register_metrics
from recbole_leaprec.model import get_model
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin
from recbole_leaprec.settings.keys import (
    MACHINE_KEYS,
    PROPERTIES,
    check_keys,
    check_values,
    listed,
    read_config_files,
    recipe_settings,
)

register_metrics()


class LeapRecConfig(CompatConfig):
    """RecBole's Config with the plugin's properties and models.

    Later sources win: RecBole's overall, model and dataset yaml; the plugin's; `<dataset>.yaml` beside the data; the recipe;
    `config_file_list`; `config_dict`.
    `<Model>CD` starts from RecBole's yaml of `<Model>`, and plain `<Model>` gets the plugin's yaml of `<Model>CD`. So a
    calibrated model and its base have the same sizes.

    Raises:
        ValueError: an unknown key, model, reranker or metric; a value out of range; a file that does not exist or is not
            yaml. The message names the key, the value and what is allowed.
    """

    def _load_config_files(self, file_list):
        return read_config_files(file_list or [])

    def _merge_external_config_dict(self):
        super()._merge_external_config_dict()
        if recipe := self.external_config_dict.get("recipe"):
            own = dict(self.external_config_dict)
            self.external_config_dict.update({**recipe_settings(recipe), **own})

    def _get_model_and_dataset(self, model, dataset):
        model = model or self.external_config_dict.get("model") or "SASRecCD"
        dataset = dataset or self.external_config_dict.get("dataset") or "ml-100k"
        for key, value in (("model", model), ("dataset", dataset)):
            if not isinstance(value, str):
                raise ValueError(f"{key} must be a name, got {value!r}")
        return model, get_model(model), dataset

    def _load_internal_config_dict(self, model, model_class, dataset):
        base = model.removesuffix("CD")
        super()._load_internal_config_dict(base, model_class, dataset)
        if issubclass(model_class, CalibrationDisentangledMixin):
            self.internal_config_dict["loss_type"] = "BPR"  # RecBole's default is CE
        own = [f"model/{model}.yaml", f"model/{base}CD.yaml"]
        own_model = next((name for name in own if (PROPERTIES / name).is_file()), None)
        for name in ("overall.yaml", own_model, f"dataset/{dataset}.yaml"):
            if name and (PROPERTIES / name).is_file():
                self._update_internal_config_dict(PROPERTIES / name)
        self._load_settings_of_data(dataset)

    def _load_settings_of_data(self, dataset: str) -> None:
        """Load the yaml file beside the atomic files, as `leaprec data` writes it."""
        folder = self.external_config_dict.get("data_path") or self.internal_config_dict["data_path"]
        path = Path(str(folder)) / dataset / f"{dataset}.yaml"
        if path.is_file():
            settings = read_config_files([path])
            try:
                check_keys(settings)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            self.internal_config_dict.update(settings)

    def _get_final_config_dict(self):
        final = super()._get_final_config_dict()
        check_keys(self.external_config_dict)
        check_values(final)
        self._complete(final)
        check_evaluation(final)
        check_training(final, self.model, self.model_class)
        self._plain = {key: copy.deepcopy(value) for key, value in final.items() if key != "MODEL_TYPE"}
        self._plain.update(model=self.model, dataset=self.dataset)
        self._complete_load_col(final)
        return final

    def _complete(self, final: dict[str, Any]) -> None:
        """Fill in settings that depend on others, unless the user sets them."""
        given = self.external_config_dict
        if final["valid_metric"] is None:
            final["valid_metric"] = metric_names(listed(final["metrics"]), listed(final["topk"]))[0]
        if final["train_positions"] is None:
            final["train_positions"] = getattr(self.model_class, "train_positions", "last")
        if final.get("loss_type") == "CE" and "train_neg_sample_args" not in given:
            final["train_neg_sample_args"] = None  # RecBole's default has negatives, but this loss refuses them
        if final.get("selected_features") and "selected_features" not in given:
            final["selected_features"] = [final["category_field"]]  # RecBole's default is class, the name in ml-100k
        if final["train_positions"] == "all" and "transform" not in given:
            final["transform"] = None  # RecBole's transforms need one row per prefix

    def settle(self, key: str, value: Any) -> None:
        """Replace a value such as auto by one that depends on the data, here and in the written config."""
        self[key] = self._plain[key] = value

    def plain(self) -> dict[str, Any]:
        """All values that are needed to make this config again, as plain values.

        The run's folder is left out, and so are keys of the machine that the user did not set.
        """
        left_out = {"output_dir"} | MACHINE_KEYS - self.external_config_dict.keys()
        return {key: value for key, value in sorted(self._plain.items()) if key not in left_out}

    def _complete_load_col(self, final: dict[str, Any]) -> None:
        """Add the columns that the plugin reads to `load_col`. Without `load_col`, RecBole loads every column."""
        if final["load_col"] is None:
            return
        filtered = list(final["val_interval"] or {})
        needed = {
            "inter": [final["USER_ID_FIELD"], final["ITEM_ID_FIELD"], final["TIME_FIELD"], *filtered],
            "item": [final["ITEM_ID_FIELD"], final["category_field"], *filtered],
        }
        load_col = dict(final["load_col"])
        for source, fields in needed.items():
            asked = load_col.get(source) or []
            if asked != "*" and not (isinstance(asked, list | tuple) and all(isinstance(one, str) for one in asked)):
                raise ValueError(f"load_col: {source} must be a list of fields, or *, got {asked!r}")
            if asked != "*":
                load_col[source] = list(dict.fromkeys([*asked, *filter(None, fields)]))
        final["load_col"] = load_col
