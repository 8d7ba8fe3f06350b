"""Which words to remove along with some words: proposals for a person, nothing is changed.

Three kinds of evidence, each from 0 to 1, whose sum ranks the proposals:

    inflection   1 if the names have the same stem by the rules of English suffixes
    nearness     cosine of the rows in the pretrained decoder
    read         share of a word's activation that is read where one of the words stands or is read too

An order of removal is found greedily (`close`). Each step tries every candidate, and takes the one with the
largest fall of harm (`harm.py`) for each row that it makes wrong, as long as all of them together do not cost
more accuracy than allowed. The texts chosen on must not be those that the removal is measured on afterwards.

Legend: N rows, C classes, V dimensions, P pairs of rows, Q shares of pairs by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.data.rows import Texts
from splade.inference.reading import read_text
from splade.intervene.cached import Cached
from splade.intervene.harm import Harm
from splade.intervene.leakage import encoded, nearness
from splade.intervene.suppress import masked, word_ids
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise
from splade.models.state import SparseRows

_SUFFIXES = ("nesses", "ingly", "edly", "ness", "ings", "ers", "ing", "est", "ies", "ed", "er", "es", "ly")
_LEAST, _SUSPECTS = 0.005, 40  # share of the harm that is worth a word; words that carry it, tried
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


@dataclass(frozen=True)
class Step:
    """One more word gone; what is left of the harm, and the share of the rows chosen on that is right."""

    word: str
    harm: float
    accuracy: float


def close(
    model: LexicalSAE,
    words: Sequence[str],
    related: Sequence[str],
    harm: Harm,
    rows: Texts,
    cost: float = 0.01,
    most: int = 30,
) -> list[Step]:
    """Which words to remove after `words`, in this order: `related` ones, and those that carry most harm.

    `rows` tell what accuracy a removal costs; `harm` is left without the words.
    """
    judged, gone, before = _Judged(model, rows), word_ids(model, words), harm.now()
    allowed = judged.right() - cost * len(rows)
    for texts in (harm, judged):
        texts.remove(gone)
    left = _candidates(model, related, harm, gone)
    steps: list[Step] = []
    while left and len(steps) < most:
        worth = _worth(harm, judged, list(left.values()), _LEAST * before, allowed)
        best = max(worth)
        if best <= 0:
            break
        word = list(left)[worth.index(best)]
        ids = left.pop(word)
        for texts in (harm, judged):
            texts.remove(ids)
        steps.append(Step(word, harm.now(), judged.right() / len(rows)))
    return steps


def _worth(
    harm: Harm, judged: _Judged, sets: Sequence[Sequence[int]], least: float, allowed: float
) -> list[float]:
    """Fall of harm for each row that a set makes wrong; 0 for what is not worth it, or not allowed."""
    now, right = harm.now(), judged.right()
    return [
        (now - then) / (1 + max(0, right - left)) if now - then >= least and left >= allowed else 0.0
        for then, left in zip(harm.without_each(sets), judged.without_each(sets), strict=True)
    ]


def _candidates(
    model: LexicalSAE, related: Sequence[str], harm: Harm, gone: Sequence[int]
) -> dict[str, list[int]]:
    """The ids of every word that may go, under its name."""
    suspects = [normalise(model.lexicon.surfaces[j]) for j in harm.suspects(_SUSPECTS)]
    found = {word: word_ids(model, [word]) for word in dict.fromkeys([*related, *suspects])}
    return {word: ids for word, ids in found.items() if not set(ids) & set(gone)}


class _Judged:
    """Labelled rows, and how many of them are right."""

    def __init__(self, model: LexicalSAE, rows: Texts) -> None:
        self._texts = Cached.read(model, rows.texts)
        self._labels_N = torch.tensor(rows.labels, device=model.backbone.E_VH.device)

    def right(self) -> int:
        return self._count(self._texts.logits())

    def without_each(self, sets: Sequence[Sequence[int]]) -> list[int]:
        return [self._count(logits_NC) for logits_NC in self._texts.without_each(sets)]

    def remove(self, ids: Sequence[int]) -> None:
        self._texts = self._texts.without(ids)

    def _count(self, logits_NC: Tensor) -> int:
        return int((logits_NC.argmax(-1) == self._labels_N).sum())


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
    """Share [V] of each word's activation read where one of `ids` stands or is read; 0 if seldom or never."""
    V, mine = model.lexicon.vocab_size, torch.tensor(list(ids))
    whole_V, shared_V, times_V = torch.zeros(V), torch.zeros(V), torch.zeros(V)
    with masked(model, ids, keep=True):
        for tokens_NL, rows in _with_tokens(model, texts):
            word_Q = rows.word_P[rows.source_pair_Q].cpu()
            amount_Q = (rows.value_P[rows.source_pair_Q] * rows.source_share_Q).cpu()
            row_Q, position_Q = rows.row_P[rows.source_pair_Q].cpu(), rows.source_position_Q.cpu()
            here_NL = torch.isin(tokens_NL, mine)
            read_Q = torch.isin(word_Q, mine) & (amount_Q > 0)
            here_NL[row_Q[read_Q], position_Q[read_Q]] = True
            whole_V.index_add_(0, word_Q, amount_Q)
            shared_V.index_add_(0, word_Q, amount_Q * here_NL[row_Q, position_Q])
            times_V.index_add_(0, rows.word_P.cpu(), rows.open_P.float().cpu())
    return torch.where(times_V >= _READINGS, shared_V / whole_V.clamp(min=1e-12), 0.0)


def _with_tokens(model: LexicalSAE, texts: Sequence[str]) -> Iterator[tuple[Tensor, SparseRows]]:
    """Sparse rows of some texts with their words' ids [N, L], -1 where a text has ended."""
    assert model.tokenizer is not None
    for indices, rows in encoded(model, texts):
        readings = (read_text(i, texts[i], model.tokenizer, model.config.max_length) for i in indices)
        tokens = [model.lexicon.word_V.new_tensor(reading.example.input_ids) for reading in readings]
        yield torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-1).cpu(), rows
