"""Words taken out of a model or weighed otherwise: for good, or while a block runs; and proofs of it.

1. `edits.py`: permanent edits, kept in a journal that is saved with the model and can be taken back.
2. `suppress.py`: the same removal for as long as a block runs.
3. `closure.py`: which words to remove along with one, for a person to decide.
4. `certificate.py`: that a removed word is 0 for every input, tried and measured.
5. `leakage.py`: how much of it the other words still tell.
6. `leace.py`: a linear projection that hides a concept from probes, to compare a removal with.
7. `erasure.py`: zeroed embeddings, which move other words and guarantee nothing.

A removed word's activation is exactly 0 for every input, because the keep mask is applied with `where` at the
one place where activations are made. Nothing else moves: the backbone and its embeddings are not touched, so
under max pooling every other word keeps its value to the bit. Inflections and neighbours of a removed word
stay; whoever wants the concept gone must name them too.
"""

from splade.intervene.edits import apply, model_hash, replay, suppress_token_globally, undo
from splade.intervene.suppress import SuppressedModel, word_ids

__all__ = [
    "SuppressedModel",
    "apply",
    "model_hash",
    "replay",
    "suppress_token_globally",
    "undo",
    "word_ids",
]
