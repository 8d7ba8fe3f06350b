"""Do the senses of a word, found without labels, tell its uses apart? Word in context, English MCL-WiC.

1. Texts in which senses are looked for: the sentences of training and test pairs, without their answers.
2. Every single-token target of the test pairs is expanded; its senses are clusters of h over its occurrences.
3. 'Same' is answered when both uses take the same slot. The baseline's threshold is tuned on training pairs.

    python benchmarks/word_in_context.py --data FOLDER_OF_MCL_WIC --senses 2
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from splade.config.model import BackboneRecord, LexicalConfig
from splade.data.encoding import Example, by_length, collate
from splade.data.wic import WordPair, read_mcl_wic
from splade.evaluation.polysemy import evaluate_polysemy, single_tokens
from splade.models.backbone import load_backbone
from splade.models.build import build
from splade.models.lexical_sae import LexicalSAE
from splade.models.senses import expand

BATCH_SIZE, MAX_LENGTH = 64, 128


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Senses found without labels, on word-in-context pairs.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the MCL-WiC distribution")
    parser.add_argument("--model", default="minilm-l6-mlm", help="masked LM (default: the embedded one)")
    parser.add_argument("--senses", type=int, default=2, help="of each word (default: 2)")
    parser.add_argument("--pairs", type=int, default=1500, help="training pairs used (default: 1500)")
    options = parser.parse_args()
    torch.manual_seed(0)
    train = read_mcl_wic(options.data, "train")[: options.pairs]
    test = read_mcl_wic(options.data, "test")
    model = untrained(options.model)
    expand(model, single_tokens(model, test), options.senses, batches(model, [*train, *test]))
    for name, value in evaluate_polysemy(model, test, train).to_dict().items():
        print(f"{name:10} {value if value is None or isinstance(value, int) else round(value, 4)}")


def untrained(name: str) -> LexicalSAE:
    """A model that has learned no task."""
    backbone, tokenizer = load_backbone(name)
    record = BackboneRecord(name=backbone.name, revision=backbone.revision)
    config = LexicalConfig(label_names=["a", "b"], backbone=record, max_length=MAX_LENGTH)
    return build(config, backbone, tokenizer).eval()


def batches(model: LexicalSAE, pairs: Sequence[WordPair]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The sentences of pairs, as (input_ids, attention_mask)."""
    assert model.tokenizer is not None
    texts = sorted({use.text for pair in pairs for use in (pair.first, pair.second)})
    encoded = model.tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
    examples = [Example(list(ids), [0], i) for i, ids in enumerate(encoded)]
    found = []
    for indices in by_length([len(ids) for ids in encoded], BATCH_SIZE):
        batch = collate(examples, indices, int(model.tokenizer.pad_token_id or 0))
        found.append((batch.input_ids, batch.attention_mask))
    return found


if __name__ == "__main__":
    main()
