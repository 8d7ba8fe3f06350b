"""Which words to remove along with some words: proposals for a person, nothing is changed.

Three kinds of evidence, each from 0 to 1, whose sum ranks the proposals:

    inflection   1 if the names have the same stem by the rules of English suffixes
    nearness     cosine of the rows in the pretrained decoder
    read         share of a word's activation that is read where one of the words is read too

Legend: V dimensions, P pairs of rows, Q shares of pairs by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.intervene.leakage import encoded, nearness
from splade.intervene.suppress import masked, word_ids
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise
from splade.models.state import SparseRows

_SUFFIXES = ("nesses", "ingly", "edly", "ness", "ings", "ers", "ing", "est", "ies", "ed", "er", "es", "ly")
_STEM = 3  # letters that a suffix must leave
_NEAR, _TOGETHER, _READINGS = 0.5, 0.5, 3  # the least that makes a proposal; texts a share is taken over


@dataclass(frozen=True)
class Proposal:
    """A word that might go too, and why."""

    word: str
    inflection: bool
    nearness: float
    read: float

    @property
    def score(self) -> float:
        """The sum of the evidence."""
        return float(self.inflection) + max(0.0, self.nearness) + self.read


def propose(
    model: LexicalSAE,
    words: Sequence[str],
    texts: Sequence[str] = (),
    E_WH: Tensor | None = None,
    most: int = 20,
) -> list[Proposal]:
    """Words still in use that belong with `words`, the likeliest first; `texts` show where words are read."""
    lexicon, ids = model.lexicon, word_ids(model, words)
    stems = {stem(lexicon.surfaces[j]) for j in ids}
    cosine_V = nearness(model, ids, E_WH).cpu()
    share_V = read_together(model, ids, texts)
    open_V = (lexicon.dictionary_V & lexicon.keep_V & lexicon.begins_V).cpu()
    open_V[ids] = False
    found: dict[str, Proposal] = {}
    for j in open_V.nonzero()[:, 0].tolist():
        inflected = stem(lexicon.surfaces[j]) in stems
        if not (inflected or cosine_V[j] >= _NEAR or share_V[j] >= _TOGETHER):
            continue
        name = normalise(lexicon.names[j])
        proposal = Proposal(name, inflected, float(cosine_V[j]), float(share_V[j]))
        found[name] = max(found.get(name, proposal), proposal, key=lambda p: p.score)
    return sorted(found.values(), key=lambda p: (-p.score, p.word))[:most]


def stem(name: str) -> str:
    """A word without its English suffix, so that forms of one word meet: `cities` and `city`."""
    word = normalise(name).removesuffix("'s").removesuffix("’s")
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _STEM:
        word = word.removesuffix("ies") + "i" if word.endswith("ies") else word[:-1]
    suffix = next((s for s in _SUFFIXES if word.endswith(s) and len(word) >= _STEM + len(s)), "")
    word = word.removesuffix(suffix)
    if suffix and word[-1] == word[-2]:
        word = word[:-1]  # stopped, stop
    word = word.removesuffix("e") if len(word) > _STEM else word
    return word[:-1] + "i" if word.endswith("y") and len(word) > _STEM else word


def read_together(model: LexicalSAE, ids: Sequence[int], texts: Sequence[str]) -> Tensor:
    """Share [V] of each word's activation read where one of `ids` is read too; 0 if seldom or never."""
    V = model.lexicon.vocab_size
    whole_V, shared_V, times_V = torch.zeros(V), torch.zeros(V), torch.zeros(V)
    with masked(model, ids, keep=True):
        for _, rows in encoded(model, texts):
            _count(rows, ids, whole_V, shared_V, times_V)
    return torch.where(times_V >= _READINGS, shared_V / whole_V.clamp(min=1e-12), 0.0)


def _count(rows: SparseRows, ids: Sequence[int], whole_V: Tensor, shared_V: Tensor, times_V: Tensor) -> None:
    """Add the readings of some rows; of a word, and of it beside one of `ids`."""
    longest = int(rows.source_position_Q.max()) + 1 if len(rows.source_position_Q) else 1
    word_Q = rows.word_P[rows.source_pair_Q].cpu()
    amount_Q = (rows.value_P[rows.source_pair_Q] * rows.source_share_Q).cpu()
    place_Q = (rows.row_P[rows.source_pair_Q] * longest + rows.source_position_Q).cpu()
    mine_Q = torch.isin(word_Q, torch.tensor(list(ids))) & (amount_Q > 0)
    beside_Q = torch.isin(place_Q, place_Q[mine_Q])
    whole_V.index_add_(0, word_Q, amount_Q)
    shared_V.index_add_(0, word_Q, amount_Q * beside_Q)
    times_V.index_add_(0, rows.word_P.cpu(), rows.open_P.float().cpu())
