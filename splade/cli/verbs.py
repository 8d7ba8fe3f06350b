"""What each verb does with its options."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splade.cli.files import Row, emit, emit_one, export, write_text
from splade.cli.streams import progress, say, screen
from splade.errors import ConfigError

if TYPE_CHECKING:
    from splade.inference import Explanation, Flip, Predictor
    from splade.inference.reading import Input
    from splade.models.lexical_sae import LexicalSAE

    Pair = tuple[Explanation, Flip | None]

Options = argparse.Namespace

SETTINGS = {  # options of `train` that stand for settings
    "data": "data.path",
    "text": "data.text",
    "label": "data.label",
    "task": "data.task",
    "limit": "data.train_samples",
    "recipe": "recipe",
    "honesty": "honesty",
    "target_active": "target_active",
    "epochs": "training.epochs",
    "seed": "seed",
    "model": "model.name",
}
_AT_ONCE = 1024  # texts read and decided before their results are written


def demo(options: Options) -> int:
    """Run the demonstration."""
    from splade.demo import run

    run(options.output, screen(), options.seed)
    return 0


def train(options: Options) -> int:
    """Train, measure and save."""
    from splade.cli import shown
    from splade.config.load import load_config
    from splade.render.terminal import metrics, table

    if options.settings:
        table(screen(), "", ["setting", "default", "meaning"], shown.settings())
        return 0
    given = {key: getattr(options, name) for name, key in SETTINGS.items()}
    overrides = {key: value for key, value in given.items() if value is not None} | _assigned(options.set)
    config = load_config(options.config, overrides)
    output = options.output or Path(config.output_dir) / config.experiment_name
    from splade import pipelines
    from splade.report.training import training_page

    results = pipelines.train(config, output, progress(), resume=options.resume).results
    write_text(output / "report.html", training_page(results))
    metrics(screen(), shown.measured(results))
    place = shlex.quote(str(output))
    if config.recipe == "dense":
        say(f"the figures are in {place}; a dense model has no words to explain by and is not kept")
    else:
        say(f'the model is in {place}; next: lexical-sae explain {place} "your text"')
    return 0


def predict(options: Options) -> int:
    """Labels of texts, or tags of words."""
    _require_texts(options)
    predictor = _predictor(options)
    rows = _watched(_inputs(options, predictor), "prediction", lambda some: _predicted(predictor, some))
    if options.output or options.format or options.input or not sys.stdout.isatty():
        emit(rows, options.output, options.format)
        return 0
    from splade.cli.shown import prediction
    from splade.render.terminal import table

    lines = [prediction(row) for row in rows]
    table(screen(), "", list(lines[0]), [list(line.values()) for line in lines])
    return 0


def explain(options: Options) -> int:
    """Why each text got its label."""
    _require_texts(options)
    predictor = _predictor(options)
    if options.counterfactual and predictor.model.config.task == "tagging":
        raise ConfigError("--counterfactual is for classification and this model tags words; leave it out")

    def work(some: Sequence[Input]) -> Iterator[Pair]:
        for index, found in enumerate(predictor.explain(some, options.method, options.explained)):
            yield found, predictor.counterfactual(some[index]) if options.counterfactual else None

    pairs: Iterable[Pair] = _watched(_inputs(options, predictor), "explanation", work)
    if options.html or options.svg:
        pairs = list(pairs)
        _draw(options, pairs)
    if options.json:
        emit(found.to_dict() | ({"counterfactual": asdict(flip)} if flip else {}) for found, flip in pairs)
    elif not (options.html or options.svg):
        _show(options, pairs)
    return 0


def evaluate(options: Options) -> int:
    """Measure a model on labelled rows."""
    from splade import pipelines
    from splade.cli import shown
    from splade.render.terminal import metrics
    from splade.report.training import training_page

    folder = options.output
    if folder and folder.resolve() == Path(options.model).resolve():
        raise ConfigError(f"{folder} holds the results of training; choose another --output")
    model = loaded(options.model)
    results = pipelines.evaluate_saved(model, options.data, options.text, options.label, progress(), folder)
    if folder:
        write_text(folder / "report.html", training_page(results))
    if options.json:
        emit_one(results)
    else:
        metrics(screen(), shown.measured(results))
    return 0


def data(options: Options) -> int:
    """A dataset in figures, or as files."""
    from splade.cli import shown
    from splade.data.datasets import load_dataset
    from splade.data.describe import describe
    from splade.render.terminal import metrics

    dataset = load_dataset(options.path, text=options.text, label=options.label, task=options.task)
    if options.export:
        export(dataset, options.export)
        return 0
    found: Row = describe(dataset)
    if options.reference:
        from splade.evaluation.reference import bag_of_words

        found["reference"] = asdict(bag_of_words(dataset))
    if options.json:
        emit_one(found)
    else:
        metrics(screen(), shown.described(found))
    return 0


def doctor(options: Options) -> int:
    """Check the installation."""
    from splade.doctor import examine
    from splade.render.terminal import metrics

    found = examine()
    if options.json:
        emit_one(found)
    else:
        metrics(screen(), found)
    return 0 if found["healthy"] else 1


def _assigned(assignments: Sequence[str]) -> Row:
    """`key=value` options as settings, values read as YAML."""
    import yaml

    found: Row = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {assignment}: write key=value, for example training.epochs=3")
        try:
            found[key] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError):
            raise ConfigError(f"--set {assignment}: the value is not YAML; put it in quotes") from None
    return found


def _require_texts(options: Options) -> None:
    if bool(options.texts) == bool(options.input):
        raise ConfigError('give texts, or --input FILE ("-" is standard input): one of the two')


def loaded(name: str) -> LexicalSAE:
    """A saved model, on the GPU where there is one."""
    from splade.models.lexical_sae import LexicalSAE
    from splade.training.fit import device

    return LexicalSAE.from_pretrained(name).to(device())


def _predictor(options: Options) -> Predictor:
    from splade.inference import Predictor

    return Predictor(loaded(options.model), options.batch_size)


def _inputs(options: Options, predictor: Predictor) -> Sequence[Input]:
    """The texts given or in the file; a tagging model gets sentences as words where a file has them so."""
    if options.texts:
        return list(options.texts)
    from splade.data.datasets import read_texts
    from splade.data.readers import file_kind, read_table

    path = Path(options.input)
    if predictor.model.config.task == "tagging" and file_kind(path) not in (None, ".txt"):
        words = [row.get(options.text or "words") for row in read_table(path).rows]
        if all(isinstance(sentence, list) for sentence in words):
            return [[str(word) for word in sentence] for sentence in words if isinstance(sentence, list)]
    return read_texts(options.input, options.text)


def _watched(
    inputs: Sequence[Input], name: str, work: Callable[[Sequence[Input]], Iterable[Any]]
) -> Iterator[Any]:
    """The results of all inputs, some inputs at a time, under a progress bar."""
    with progress().task(name, len(inputs)) as advance:
        for start in range(0, len(inputs), _AT_ONCE):
            some = inputs[start : start + _AT_ONCE]
            yield from work(some)
            advance(len(some))


def _predicted(predictor: Predictor, inputs: Sequence[Input]) -> Iterator[Row]:
    from splade.inference.reading import split_words

    if predictor.model.config.task == "classification":
        for text, found in zip(inputs, predictor.predict(inputs), strict=True):
            values = asdict(found)
            yield {"text": text, "prediction": values.pop("label"), **values}
        return
    for index, (sentence, tags) in enumerate(zip(inputs, predictor.predict_tags(inputs), strict=True)):
        yield {
            "words": split_words(sentence, index),
            "tags": [tag.label for tag in tags],
            "probabilities": [tag.probability for tag in tags],
        }


def _show(options: Options, pairs: Iterable[Pair]) -> None:
    from rich.text import Text

    from splade.cli.shown import flip_sentence
    from splade.render.terminal import explanation

    console, shown = screen(options.color), 0
    for shown, (found, flip) in enumerate(pairs, 1):
        if shown > 1:
            console.print()
        explanation(console, found.to_dict(), options.top)
        if flip:
            console.print(Text(f"\n{flip_sentence(flip)}"), soft_wrap=True)
    if not shown:
        say("no entity or label was found, so there is nothing to explain; --class NAME explains every word")


def _draw(options: Options, pairs: Sequence[Pair]) -> None:
    """The explanations as a page, the only one as a picture."""
    from splade.cli.shown import flip_sentence
    from splade.render import html
    from splade.render.svg import explanation_svg

    if options.svg:
        if len(pairs) != 1:
            raise ConfigError(
                f"--svg draws one explanation and there are {len(pairs)}; use --html for several"
            )
        write_text(options.svg, explanation_svg(pairs[0][0].to_dict(), top=options.top))
    if options.html:
        sections = []
        for found, flip in pairs:
            sections.append(html.explanation(found.to_dict(), options.top))
            sections += [html.prose(flip_sentence(flip))] if flip else []
        write_text(options.html, html.page("Explanations", sections))
