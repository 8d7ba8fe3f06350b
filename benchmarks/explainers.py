"""How many texts a second are explained, beside captum, SHAP and LIME, on one model and the same texts?

1. The embedded backbone with a random head, generated reviews, and `splade.evaluation.explainers` at each
   explainer's best batch size; faithfulness is not asked here.
2. What each method cannot do without: its passes through the same model, in the largest batch. Any
   implementation, also one that is not installed here, takes at least as long.

    python benchmarks/explainers.py --device cuda --output docs/results/performance.md
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from measure import seconds_of
from models import config_of, lexicon_of, model_of, review_batch, review_texts, to
from table import Section, attempt, parser, report, with_device

from splade.evaluation.explainers.compare import BATCH_SIZES, compare
from splade.evaluation.explainers.inputs import EXPLAINERS
from splade.evaluation.explainers.questions import Settings
from splade.models.backbone import EMBEDDED, load_backbone
from splade.models.lexical_sae import LexicalSAE

WORDS, JOINED = 100, 12  # open words of a text, reviews in it
LENGTH, QUICK_LENGTH = {"cpu": 32, "cuda": 128}, 16
TEXTS, MANY = {"cpu": 1, "cuda": 8}, {"cpu": 16, "cuda": 256}  # for most; for those that batch texts
VARIANTS = {"cpu": 16, "cuda": 512}  # of a text, in one pass
METHODS = ("ours", "integrated_gradients", "gradient_shap", "shap", "lime", "attention_rollout")
BARS = {"integrated_gradients": 50, "shap": 250, "lime": 1000}
COLUMNS = ("explainer", "passes a text", "ms a text", "× ours", "bar", "batch", "texts")


def main() -> None:
    """Measure, print, and write if asked to."""
    options = with_device(parser("Explained texts a second beside captum, SHAP and LIME.")).parse_args()
    settings = Settings(2, 2, 8, 8) if options.quick else Settings()
    length = QUICK_LENGTH if options.quick else LENGTH[options.device.type]
    bench = Bench(_model(options.device, length), settings)
    rows = [
        *(attempt((name,), COLUMNS, partial(bench.explained, name)) for name in METHODS),
        *(attempt((name,), COLUMNS, partial(bench.passes, *what)) for name, what in bench.floors().items()),
    ]
    question = "How many times longer do other explainers take on the same model?"
    report(
        Section(
            f"explainers-{options.device.type}", question, COLUMNS, rows, _notes(length, options.device.type)
        ),
        options.output,
    )


def _model(device: torch.device, length: int) -> LexicalSAE:
    torch.manual_seed(0)
    backbone, tokenizer = load_backbone()
    config = config_of(backbone, max_length=length)
    batch = review_batch(tokenizer, 16, length, JOINED)
    lexicon = lexicon_of(config, backbone.vocab_size, tokenizer)
    model = model_of(config, backbone, lexicon, batch, WORDS, device)
    model.tokenizer = tokenizer
    return model


class Bench:
    """One model, its texts, and how much each explainer may ask."""

    def __init__(self, model: LexicalSAE, settings: Settings) -> None:
        self.model, self.settings = model, settings
        device = model.backbone.E_VH.device
        self.texts = review_texts(MANY[device.type], JOINED)
        self.few = self.texts[: TEXTS[device.type]]
        self.ours: float | None = None
        assert model.tokenizer is not None
        ids_1L, _ = review_batch(model.tokenizer, 1, model.config.max_length, JOINED)
        ids_ML = ids_1L.repeat(VARIANTS[device.type], 1)
        self.variants = to((ids_ML, torch.ones_like(ids_ML)), device)

    def explained(self, name: str) -> list[object]:
        """An explainer's cells, or what it lacks."""
        # no fraction of the words is erased: what the scores are worth is another question
        texts = self.texts if EXPLAINERS[name].batches else self.few
        row = compare(self.model, texts, self.settings, [name], fractions=(1.0,))[-1]
        if row.cost is None:
            return ["", row.note, "", BARS.get(name, ""), "", row.texts]
        if name == "ours":
            self.ours = row.cost.milliseconds
        passes = round(row.cost.forward_passes)
        return [passes, *self._times(row.cost.milliseconds, name), row.cost.batch_size, row.texts]

    def floors(self) -> dict[str, tuple[str, int, Callable[[], None]]]:
        """The passes that a method needs by its definition."""
        settings = self.settings
        asked = {
            "integrated_gradients": (settings.ig_steps, self._backward),
            "shap": (settings.shap_evaluations, self._forward),
            "lime": (settings.lime_samples, self._forward),
        }
        return {f"{name}: its passes alone": (name, count, run) for name, (count, run) in asked.items()}

    def passes(self, name: str, count: int, run: Callable[[], None]) -> list[object]:
        """`count` variants of a text through the model, many at once."""
        device, size = self.model.backbone.E_VH.device, len(self.variants[0])
        run()
        seconds = min(seconds_of(run, device) for _ in range(3)) * count / size
        return [count, *self._times(1e3 * seconds, name), size, 1]

    def _times(self, milliseconds: float, name: str) -> list[object]:
        beside = f"{milliseconds / self.ours:,.1f}" if self.ours else "–"
        return [f"{milliseconds:,.2f}", beside, BARS.get(name, "")]

    @torch.no_grad()
    def _forward(self) -> None:
        self.model.decide(self.model.encode(*self.variants))

    def _backward(self) -> None:
        logits_MC = self.model.decide(self.model.encode(*self.variants)).logits
        torch.autograd.grad(logits_MC.sum(), self.model.backbone.mlm.get_input_embeddings().weight)


def _notes(length: int, kind: str) -> list[str]:
    sizes = ", ".join(map(str, BATCH_SIZES[kind]))
    return [
        f"{EMBEDDED} with a random head, float32, thresholds open about {WORDS} words a text; generated "
        f"reviews of {length} tokens, seed 0. The class explained is the predicted one.",
        f"Each at the fastest of the batch sizes {sizes}, in texts for those that batch texts, else in "
        "variants of one. Passes alone: variants of one text, forward; of integrated gradients backward too.",
    ]


if __name__ == "__main__":
    main()
