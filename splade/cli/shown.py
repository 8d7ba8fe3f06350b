"""Results as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from splade.render.ledger import percent
from splade.render.text import label

if TYPE_CHECKING:
    from splade.inference import Flip

Row = dict[str, Any]


def prediction(row: Row) -> Row:
    """A prediction as a line of a table."""
    if "tags" in row:
        pairs = zip(row["words"], row["tags"], strict=True)
        return {"tagged": " ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in pairs)}
    if "labels" in row:
        found = [f"{name} {percent(row['probabilities'][name])}" for name in row["labels"]]
        text = f"{row['text']} (cut)" if row["truncated"] else row["text"]
        return {"labels": ", ".join(found) or "none", "text": text}
    shown = {"prediction": row["prediction"], "probability": percent(row["probability"]), "text": row["text"]}
    return {**shown, "text": f"{row['text']} (cut)"} if row["truncated"] else shown


def flip_sentence(flip: Flip) -> str:
    """A counterfactual, and how far it is proved."""
    if not flip.words:
        proof = "all sets" if flip.minimal else f"all sets of up to {flip.searched}"
        return f"No words were found whose removal changes {label(flip.before)} ({proof} were tried)."
    proof = (
        "proved smallest: every smaller set was tried"
        if flip.minimal
        else f"a smaller set may exist: those of up to {flip.searched} words were tried"
    )
    words = ", ".join(label(word) for word in flip.words)
    return f"Without {words} it would be {label(flip.after)} instead of {label(flip.before)} ({proof})."


def settings() -> list[list[str]]:
    """Every setting of training: key, default, meaning."""
    from splade.config.describe import describe_settings

    return [[s.key, "" if s.default is None else str(s.default), s.description] for s in describe_settings()]


def measured(results: Mapping[str, Any]) -> Row:
    """The figures of a training or evaluation run."""
    split = results.get("measured_on", "test")
    return {
        "data": f"{results['dataset']}, {results['rows'][split]:,} {split} rows",
        **_quality(results),
        "calibration_error": percent(results["ece"]),
        **_words(results),
        **_faithfulness(results),
        **_classes(results),
        **_layers(results),
        **_gate_cost(results),
        **_autoencoders(results),
        **_problems(results),
    }


def described(found: Mapping[str, Any]) -> Row:
    """A dataset's description, a line for each figure, without its empty parts."""
    shown = {key: value for key, value in found.items() if value not in ([], {})}
    shown["splits"] = {name: _split(split) for name, split in shown["splits"].items()}
    if "reference" in shown:
        shown["reference"] = {**shown["reference"], "score": percent(shown["reference"]["score"])}
    return shown


def _split(split: Mapping[str, Any]) -> Row:
    words = split["words"]
    return {
        "rows": split["rows"],
        "classes": ", ".join(f"{name} {count:,}" for name, count in split["classes"].items()),
        "words": f"{words['min']:,} to {words['max']:,}, median {words['median']:,}" if words else "none",
        "empty": split["empty"],
    }


def _quality(results: Mapping[str, Any]) -> Row:
    entities = results.get("entities", {})
    name = "token_accuracy" if entities else "accuracy"
    shown: Row = {name: percent(results["accuracy"])}
    if entities:
        shown["entity_f1"] = {kind: percent(scores["f1"]) for kind, scores in entities.items()}
    elif "class_f1" in results:
        averages = {"micro": results["f1"], "macro": results["macro_f1"]}
        shown["label_f1"] = {name: percent(f1) for name, f1 in {**averages, **results["class_f1"]}.items()}
    else:
        shown["recall"] = {label: percent(share) for label, share in results.get("recall", {}).items()}
    return shown


def _words(results: Mapping[str, Any]) -> Row:
    """What a model's words are; a step that failed has no line."""
    shown: Row = {}
    if active := results.get("active_words"):
        shown["active_words"] = f"{active['mean']:.1f} on average, {active['max']:,} at most"
    if sums := results.get("dla"):
        shown["largest_residual"] = f"{sums['max_relative_residual']:.1e}"
    if words := results.get("dictionary"):
        shown |= _honesty(words)
    return shown


def _faithfulness(results: Mapping[str, Any]) -> Row:
    """What removing words does to decisions."""
    shown: Row = {}
    if erasers := results.get("eraser"):
        shown["comprehensiveness"] = _interval(erasers[0]["aopc_comprehensiveness"])
        shown["sufficiency"] = _interval(erasers[0]["aopc_sufficiency"])
    for circuit in results.get("completeness", []):
        if circuit["fraction"] == 0.1:
            shown["same_by_a_tenth_of_words"] = percent(circuit["agreement"])
    if flips := results.get("removability"):
        rates = {f"the top {at['k']}": percent(at["rate"]["mean"]) for at in flips["at"]}
        shown["flips_without_words"] = rates
    return shown


def _classes(results: Mapping[str, Any]) -> Row:
    """How alike the reasons of classes are."""
    found = results.get("separation", {})
    if found.get("mean_cosine") is None:
        return {}
    closest = " and ".join(map(label, found["closest"]))
    return {
        "cosine_of_classes": f"{found['mean_cosine']:.2f} on average, {found['max_cosine']:.2f} of {closest}"
    }


def _layers(results: Mapping[str, Any]) -> Row:
    """What embeddings, layers and bias add to each class, on average."""
    found = results.get("layerwise", {}).get("classes", [])
    return {"layers": {one["label"]: _sum_of_layers(one) for one in found}} if found else {}


def _sum_of_layers(one: Mapping[str, Any]) -> str:
    steps = "  ".join(f"{value:+.2f}" for value in one["layers"])
    ends = f"embeddings {one['embeddings']:+.2f}, layers {steps}, bias {one['bias']:+.2f}"
    return f"{one['logit']:.2f} = {ends}"


def _gate_cost(results: Mapping[str, Any]) -> Row:
    """Words without a direction, losses with and without the gate, and how many words do the work."""
    found, flips = results.get("scaling", {}), results.get("sign_flips")
    shown: Row = {}
    if flips:
        shown["words_that_argue_both_ways"] = f"{percent(flips['share'])} of {flips['words']:,}"
    if found.get("lm_loss") is not None:
        shown["guessing_hidden_words"] = (
            f"loss {found['lm_loss']:.2f}, {found['lm_loss_gated']:.2f} by active words alone"
        )
    if found.get("head_loss") is not None:
        shown["loss"] = f"{found['head_loss']:.3f}, {found['head_loss_relu']:.3f} without the gate"
        shown["words_that_do_the_work"] = f"{found['ablation_sparsity']:.1f}"
    return shown


def _autoencoders(results: Mapping[str, Any]) -> Row:
    """Post-hoc autoencoders in the place of what the vocabulary head reads."""
    found = results.get("sae", [])
    return {"autoencoders": {one["kind"]: _spliced(one) for one in found}} if found else {}


def _spliced(one: Mapping[str, Any]) -> str:
    said = (
        f"{percent(one['explained_variance'])} explained by {one['l0']:.0f} of {one['features']:,} features"
    )
    return f"{said}, accuracy {100 * one['accuracy_change']:+.1f} points, {percent(one['agreement'])} alike"


def _problems(results: Mapping[str, Any]) -> Row:
    """Steps that failed, and why."""
    found = results.get("problems", {})
    return {"not_measured": {step: label(why, 200) for step, why in found.items()}} if found else {}


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['mean']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def _honesty(words: Mapping[str, Any]) -> Row:
    vocabulary, texts = words["effective_vocabulary"], words["texts"]
    return {
        "words_in_dictionary": words["size"],
        "grounded_where_read": _share(words["grounding100"]),
        "grounded_anywhere": _share(words["grounding100_anywhere"]),
        "in_the_text": _share(words["in_input"]),
        "effective_vocabulary": {
            name: f"{size:,.0f} words in {texts[name]:,} predictions" for name, size in vocabulary.items()
        },
        "top_reasons": {
            name: ", ".join(reason["word"] for reason in found)
            for name, found in words["top_reasons"].items()
        },
        "code_words": ", ".join(word["word"] for word in words["code_words"]) or "none",
    }


def _share(value: float | None) -> str:
    return "not measured" if value is None else percent(value)
