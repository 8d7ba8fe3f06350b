"""Texts that are hard to read, and a predictor over a tiny random model."""

from __future__ import annotations

from splade.inference import Explanation, Predictor
from tests.tiny import SENTENCES, tiny_model

LONG = " ".join(SENTENCES)  # longer than a tiny model's limit
STRANGE = (
    "",
    " \n\t ",
    "😀🎉 👩‍👩‍👧‍👦 👍🏽",
    "cafe\u0301 ﬁlm ｆｉｌｍ naïve film",
    "the\u200bclever ﬀ 東京 שלום film \n\n",
    "charming, unreliable!! friendly\u0301 film  ",
    "<script>alert('film')</script> & clever",
)


def predictor(batch_size: int = 4, **kinds: object) -> Predictor:
    """A tiny model that speaks many words, so that every sum has something to add."""
    return Predictor(tiny_model(**{"opened": 25, **kinds}), batch_size)


def assert_sums(found: Explanation) -> None:
    """Words and spans, each with the bias, are the logit, and the shares of every word are whole."""
    scale = 1 + sum(abs(word.contribution) for word in found.words)
    for parts in (found.words, found.spans):
        total = found.bias + sum(part.contribution for part in parts)
        assert abs(total - found.logit) <= 1e-5 * scale
    for word in found.words:
        assert abs(sum(read.share for read in word.read_at) - 1) <= 1e-5
    assert found.residual <= 1e-6
