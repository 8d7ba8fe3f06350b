"""The parts of a report that say what the words do: circuits, erasure, removal, classes, layers, costs.

Every part stands alone and is empty where its step was not run; `failed` lists the steps that could not be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.charts import line_chart
from splade.report.sections import Results, amount, known, part, section, share

Found = Mapping[str, Any]

_MOST_CHARTS = 4  # classes drawn; more of them make a table
_WIDTH, _HEIGHT = 380, 200
_CIRCUITS = """## Do a few words decide as all of them do?

A circuit is the share of a text's active words that add most, by size, to its predicted class. The model
decides again from the circuit alone. Agreement is the share of decisions that stay the same. What a class
keeps is its recall, or F1 of entities, over that of the whole model."""
_ERASURE = """## Were the named words needed, and are they enough?

The words that add most to a class are taken out, exactly, or kept alone. Comprehensiveness is the fall in
the probability of the class without them: large where they were needed. Sufficiency is the fall with them
alone: small where they are enough. AOPC is the mean over all shares. In brackets, a 95 % interval over
texts."""
_REMOVAL = """## Can a decision be taken away with its words?

The share of decisions that change when the words that add most to them go, with a 95 % interval."""
_CLASSES = """## Do classes have reasons of their own?

The mean contributions of each class are compared: by their cosine, and by how far the words of their
circuits overlap (Jaccard). Below are the words whose mean contribution is largest."""
_LAYERS = """## What does each layer add?

Words, places and slopes are held as they were decided; the state after each layer is read out through the
end of the model. What the embeddings and the layers add, with the bias, sums to the logit. Left out is
another question: how far the logit falls when the layer is skipped and all is decided anew."""
_SCALING = """## What does the gate cost?

The language model guesses hidden words once with all logits and once with the active ones only. The head
decides once with the gate and once with every positive logit. The last two figures say how many words do
the work: 1 where one word does it all."""
_AUTOENCODERS = """## Beside sparse autoencoders

Autoencoders were trained after the fact on what the vocabulary head reads, from training texts only, and
put in its place. Changes are those of the spliced model against the plain one."""
_FAILED = """## What could not be measured

These steps failed; the others were not touched by it."""


def measures(results: Results) -> list[Markup]:
    """All parts, in the order in which a reader asks."""
    parts = (circuits, erasure, removal, classes, layers, gate_cost, autoencoders, failed)
    return [found(results) for found in parts]


def circuits(results: Results) -> Markup:
    """Agreement and score of circuits by their size, and what each class keeps."""
    found: Sequence[Found] = results.get("completeness") or []
    lines = {
        "same decision": _curve(found, "fraction", "agreement"),
        "F1" if results.get("f1") is not None else "accuracy": _curve(found, "fraction", "score"),
    }
    if not any(lines.values()):
        return Markup()
    chart = line_chart("Decisions of circuits", lines, "% of active words", "%", _WIDTH, _HEIGHT)
    names = list(dict.fromkeys(name for circuit in found for name in part(circuit, "retention")))
    rows = [[name, *(share(part(circuit, "retention").get(name)) for circuit in found)] for name in names]
    sizes = [f"{share(circuit.get('fraction')) or 'a share'} of words" for circuit in found]
    kept = html.table("What each class keeps", ["Class", *sizes], rows) if rows else Markup()
    return section(_CIRCUITS, html.columns([chart, kept]) if kept else chart)


def erasure(results: Results) -> Markup:
    """ERASER for each target: the means over all shares, then each share."""
    found: Sequence[Found] = results.get("eraser") or []
    tables = [_erased(eraser) for eraser in found]
    return section(_ERASURE, html.columns(tables)) if tables else Markup()


def removal(results: Results) -> Markup:
    """Flip rates by how many words go."""
    found = part(results, "removability")
    rows = [[at.get("k"), _interval(at.get("rate"), percent=True)] for at in found.get("at") or []]
    if not rows:
        return Markup()
    caption = f"Over {found.get('rows'):,} rows" if found.get("rows") is not None else "Flips"
    return section(_REMOVAL, html.table(caption, ["Words removed", "Decisions changed"], rows))


def classes(results: Results) -> Markup:
    """How alike classes are, and the first words of each one's circuit."""
    found = part(results, "separation")
    figures = known(
        {
            "Cosine on average": amount(found.get("mean_cosine"), 2),
            "Cosine at most": amount(found.get("max_cosine"), 2),
            "Most alike": " and ".join(map(str, found.get("closest") or [])) or None,
        }
    )
    overlaps = [
        [share(at.get("fraction")), amount(at.get("mean_jaccard"), 2), amount(at.get("max_jaccard"), 2)]
        for at in found.get("jaccard") or []
    ]
    columns = ["Circuit's share of words", "On average", "At most"]
    overlap = html.table("Overlap of circuits (Jaccard)", columns, overlaps) if overlaps else Markup()
    return section(_CLASSES, figures, overlap, _class_words(found.get("circuits") or []))


def layers(results: Results) -> Markup:
    """Bars of what each layer adds to each class, or a table where there are many classes."""
    found = part(results, "layerwise")
    shown: Sequence[Found] = found.get("classes") or []
    if not shown:
        return Markup()
    figures = known(
        {"Texts or words sampled": found.get("rows"), "Largest residual": found.get("max_relative_residual")}
    )
    if len(shown) > _MOST_CHARTS:
        return section(_LAYERS, figures, _layer_table(shown))
    bars = [html.bars(f"Mean logit of {_of(one)}", list(_layer_values(one)), unit="logit") for one in shown]
    falls = [
        html.bars(f"Fall of {_label(one)} without a layer", list(_numbered(one, "left_out")), unit="logit")
        for one in shown
    ]
    return section(_LAYERS, figures, html.columns(bars), html.columns(falls))


def gate_cost(results: Results) -> Markup:
    """Losses with and without the gate, and how many words do the work."""
    found = part(results, "scaling")
    figures = {
        "Hidden words": found.get("hidden"),
        "Loss of the language model": amount(found.get("lm_loss"), 2, " nats"),
        "Loss with active words only": amount(found.get("lm_loss_gated"), 2, " nats"),
        "Rows": found.get("rows"),
        "Loss of the head": amount(found.get("head_loss"), 3, " nats"),
        "Loss of the head without the gate": amount(found.get("head_loss_relu"), 3, " nats"),
        "KL between the two": amount(found.get("head_kl"), 3, " nats"),
        "Words that do the work, by removal": amount(found.get("ablation_sparsity"), 1),
        "Words that do the work, by contribution": amount(found.get("contribution_sparsity"), 1),
    }
    return section(_SCALING, known(figures))


def autoencoders(results: Results) -> Markup:
    """A line for each kind of autoencoder."""
    found: Sequence[Found] = results.get("sae") or []
    columns = [
        "Kind",
        "Features",
        "Active",
        "Dead",
        "Explained",
        "Accuracy",
        "Change",
        "Loss",
        "Change",
        "Same decision",
    ]
    rows = [
        [
            one.get("kind"),
            one.get("features"),
            amount(one.get("l0"), 1),
            share(one.get("dead")),
            share(one.get("explained_variance")),
            share(one.get("accuracy")),
            _points(one.get("accuracy_change")),
            amount(one.get("cross_entropy"), 3),
            _signed(one.get("cross_entropy_change")),
            share(one.get("agreement")),
        ]
        for one in found
    ]
    return section(_AUTOENCODERS, html.table("Autoencoders", columns, rows)) if rows else Markup()


def failed(results: Results) -> Markup:
    """Steps that raised, and why."""
    rows = [[step.replace("_", " "), why] for step, why in part(results, "problems").items()]
    return section(_FAILED, html.table("Failed steps", ["Step", "Why"], rows)) if rows else Markup()


# --- pieces -----------------------------------------------------------------------------------------------


def _curve(found: Sequence[Found], x: str, y: str) -> list[tuple[float, float]]:
    """Points in percent, where both figures are there."""
    pairs = ((one.get(x), one.get(y)) for one in found)
    return [(100 * a, 100 * b) for a, b in pairs if a is not None and b is not None]


def _erased(found: Found) -> Markup:
    rows = [
        [
            share(at.get("fraction")),
            _interval(at.get("comprehensiveness")),
            _interval(at.get("sufficiency")),
        ]
        for at in found.get("at") or []
    ]
    means = [_interval(found.get(f"aopc_{kind}")) for kind in ("comprehensiveness", "sufficiency")]
    caption = f"The {found.get('target') or 'explained'} class"
    columns = ["Share of words", "Comprehensiveness", "Sufficiency"]
    return html.table(caption, columns, [["AOPC", *means], *rows])


def _interval(found: Found | None, percent: bool = False) -> str | None:
    """A mean with its interval in brackets."""
    if not found or any(found.get(key) is None for key in ("mean", "low", "high")):
        return None
    shown = [share(found[key]) if percent else f"{found[key]:.3f}" for key in ("mean", "low", "high")]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _class_words(found: Sequence[Found]) -> Markup:
    if not found:
        return Markup()
    if len(found) > _MOST_CHARTS:
        rows = [
            [
                one.get("label"),
                one.get("rows"),
                one.get("active"),
                ", ".join(w["word"] for w in one.get("words") or []),
            ]
            for one in found
        ]
        return html.table("Circuits of classes", ["Class", "Rows", "Active words", "First words"], rows)
    return html.columns(
        [
            html.bars(
                f"{_label(one)}: {one.get('active') or 0:,} words in {one.get('rows') or 0:,} rows",
                [(w["word"], w["mean"]) for w in one.get("words") or []],
                unit="mean contribution",
            )
            for one in found
        ]
    )


def _layer_values(one: Found) -> Iterator[tuple[str, float]]:
    if one.get("embeddings") is not None:
        yield "embeddings", one["embeddings"]
    yield from _numbered(one, "layers")
    if one.get("bias") is not None:
        yield "bias", one["bias"]


def _numbered(one: Found, key: str) -> Iterator[tuple[str, float]]:
    return ((f"layer {k}", value) for k, value in enumerate(one.get(key) or [], 1))


def _label(one: Found) -> str:
    return str(one.get("label") or "a class")


def _of(one: Found) -> str:
    logit = amount(one.get("logit"), 2)
    return f"{_label(one)}: {logit}" if logit else _label(one)


def _layer_table(found: Sequence[Found]) -> Markup:
    depth = max(len(one.get("layers") or []) for one in found)
    columns = ["Class", "Logit", "Embeddings", *(f"Layer {k}" for k in range(1, depth + 1)), "Bias"]
    rows = [
        [
            one.get("label"),
            *(
                amount(value, 2)
                for value in (one.get("logit"), one.get("embeddings"), *(one.get("layers") or []))
            ),
            amount(one.get("bias"), 2),
        ]
        for one in found
    ]
    return html.table("What each layer adds, on average", columns, rows)


def _points(change: float | None) -> str | None:
    return None if change is None else f"{100 * change:+.1f} points"


def _signed(change: float | None) -> str | None:
    return None if change is None else f"{change:+.3f}"
