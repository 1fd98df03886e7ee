"""The plugin's models, one per file. To add one, import it here; it is then known by name."""

from recbole_leaprec.model.sequential_recommender.bert4reccd import BERT4RecCD
from recbole_leaprec.model.sequential_recommender.casercd import CaserCD
from recbole_leaprec.model.sequential_recommender.dacsr import DACSR
from recbole_leaprec.model.sequential_recommender.fearec import FEARec
from recbole_leaprec.model.sequential_recommender.gru4reccd import GRU4RecCD
from recbole_leaprec.model.sequential_recommender.ligrcd import LiGRCD
from recbole_leaprec.model.sequential_recommender.sasreccd import SASRecCD
