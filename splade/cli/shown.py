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
        **(_words(results) if "dictionary" in results else {}),
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
    active = results["active_words"]
    return {
        "active_words": f"{active['mean']:.1f} on average, {active['max']:,} at most",
        "largest_residual": f"{results['dla']['max_relative_residual']:.1e}",
        **_honesty(results["dictionary"]),
        **_faithfulness(results),
    }


def _faithfulness(results: Mapping[str, Any]) -> Row:
    """What removing words does to decisions; absent from the records of older versions."""
    if not results.get("eraser"):
        return {}
    eraser, flips = results["eraser"][0], results["removability"]["at"]
    tenth = next(circuit for circuit in results["completeness"] if circuit["fraction"] == 0.1)
    return {
        "comprehensiveness": _interval(eraser["aopc_comprehensiveness"]),
        "sufficiency": _interval(eraser["aopc_sufficiency"]),
        "same_by_a_tenth_of_words": percent(tenth["agreement"]),
        "flips_without_words": {f"the top {at['k']}": percent(at["rate"]["mean"]) for at in flips},
    }


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
