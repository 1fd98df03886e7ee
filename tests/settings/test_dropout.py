"""`hidden_dropout_prob: auto`, a rule of the data."""

import pytest

from recbole_leaprec.run import Run
from recbole_leaprec.settings.dropout import dropout_for


@pytest.mark.parametrize(("per_item", "dropout"), [(1, 0.5), (16, 0.5), (38, 0.45), (148, 0.3), (1000, 0.1), (1e9, 0.1)])
def test_rare_items_have_more_of_it(per_item, dropout):
    assert dropout_for(per_item) == dropout


def test_a_run_has_a_number_in_the_place_of_auto(make_config):
    config = make_config("LiGRCD", hidden_dropout_prob="auto")
    run = Run.prepare(config)
    wanted = dropout_for(run.dataset.inter_num / (run.dataset.item_num - 1))
    assert run.model.dropout.p == config.plain()["hidden_dropout_prob"] == wanted
