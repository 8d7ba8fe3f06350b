"""Training, evaluating and describing data from the command line."""

import json
from pathlib import Path

import pytest

from splade.cli.verbs import SETTINGS
from splade.config.describe import all_keys, describe_settings
from splade.data.datasets import load_dataset

COLUMNS = ("--text", "body", "--label", "team")


@pytest.fixture
def quick(rows, masked_lm) -> list[str]:
    options = {
        "--model": masked_lm,
        "--epochs": "1",
        "--target-active": "8",
        "--set": "data.validation_share=0.2",
    }
    return ["train", "--data", rows, *COLUMNS, *(item for pair in options.items() for item in pair)]


def test_training_measures_saves_and_says_what_to_do_next(run, quick, tmp_path) -> None:
    output = tmp_path / "model"
    found = run(
        *quick, "--set", "training.learning_rate=3e-4", "--set", "training.width=8", "--output", output
    )
    assert found.code == 2  # width belongs to the model
    found = run(*quick, "--set", "training.learning_rate=3e-4", "--set", "model.width=8", "--output", output)
    assert found.code == 0
    assert "accuracy" in found.out
    assert f'lexical-sae explain {output} "' in found.err
    assert "lexical-sae: warning:" in found.err  # the tiny masked LM is untrained
    assert "epoch 1" in found.err
    names = {"config.json", "model.safetensors", "results.json", "report.html", "training.yaml"}
    assert names <= {path.name for path in output.iterdir()}
    settings = json.loads((output / "config.json").read_text())["training"]
    assert settings["training"]["learning_rate"] == 3e-4
    assert settings["model"]["width"] == 8
    assert settings["target_active"] == 8
    assert run("predict", output, "the film").lines[0]["prediction"] in ("class a", "class b")


def test_a_dense_model_is_measured_and_not_said_to_be_there(run, quick, tmp_path) -> None:
    found = run(*quick, "--recipe", "dense", "--output", tmp_path / "dense")
    assert found.code == 0
    assert f"figures are in {tmp_path / 'dense'}" in found.err
    assert "lexical-sae explain" not in found.err


def test_options_come_before_the_file(run, quick, tmp_path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("seed: 3\ntarget_active: 5\nmodel: {width: 8}\n")
    assert run(*quick, "--config", config, "--output", tmp_path / "model").code == 0
    settings = json.loads((tmp_path / "model" / "config.json").read_text())["training"]
    assert (settings["seed"], settings["target_active"]) == (3, 8)


def test_every_option_stands_for_a_setting() -> None:
    assert set(SETTINGS.values()) <= set(all_keys())


def test_settings_are_listed_with_their_meaning(run) -> None:
    found = run("train", "--settings")
    assert found.code == 0
    keys = {line.split()[0] for line in found.out.splitlines() if line[:1].isalpha()}
    assert {setting.key for setting in describe_settings()} <= keys


def test_unusable_settings_are_named(refused, tmp_path) -> None:
    output = ("--output", tmp_path / "model")
    assert "did you mean training.epochs" in refused("train", "--set", "training.epoch=3", *output)
    assert "key=value" in refused("train", "--set", "epochs", *output)
    assert "not YAML" in refused("train", "--set", "seed=[1", *output)
    assert "honesty" in refused("train", "--honesty", "perfect", *output)
    assert "data.train_samples" in refused("train", "--limit", "0", *output)
    config = tmp_path / "run.yaml"
    config.write_text("seed: [")
    assert "not YAML" in refused("train", "--config", config, *output)
    assert "cannot be read" in refused("train", "--config", tmp_path / "none.yaml", *output)
    assert not (tmp_path / "model").exists()


def test_unusable_rows_are_named(refused, tmp_path) -> None:
    output = ("--output", tmp_path / "model")
    table = tmp_path / "rows.csv"
    table.write_text("text,label\nthe film,a\na slow film,a\n")
    assert "two classes" in refused("train", "--data", table, *output)
    assert "no column 'team'" in refused("train", "--data", table, "--label", "team", *output)
    table.write_text("")
    assert "empty" in refused("train", "--data", table, *output)
    assert "no such file" in refused("train", "--data", tmp_path / "none.csv", *output)


def test_rows_to_measure_on_are_asked_for_before_training(refused, quick, tmp_path) -> None:
    line = refused(*quick, "--set", "data.validation_share=0", "--output", tmp_path / "model")
    assert "no test or validation rows" in line
    assert not (tmp_path / "model").exists()


def test_a_folder_of_something_else_is_refused_before_training(refused, quick, tmp_path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("meow")
    assert "choose another folder" in refused(*quick, "--output", tmp_path / "photos")
    assert "choose another folder" in refused(*quick, "--output", tmp_path / "photos" / "cat.png")
    assert "cannot write in" in refused(*quick, "--output", tmp_path / "photos" / "cat.png" / "x" / "y")
    assert (tmp_path / "photos" / "cat.png").read_text() == "meow"


def test_evaluation_prints_figures_and_writes_them(run, model, rows, tmp_path) -> None:
    folder = tmp_path / "measured"
    found = run("evaluate", model, "--data", rows, *COLUMNS, "--output", folder)
    assert found.code == 0
    for name in ("accuracy", "active words", "largest residual", "effective vocabulary", "top reasons"):
        assert name in found.out
    assert "not measured" in found.out
    assert "lexical-sae: warning: grounding is not measured" in found.err
    results = json.loads((folder / "results.json").read_text())
    assert results["dla"]["max_relative_residual"] < 1e-6
    assert "<html" in (folder / "report.html").read_text()


def test_evaluation_as_json_is_one_object(run, model, rows) -> None:
    found = run("evaluate", model, "--data", rows, *COLUMNS, "--json")
    results = json.loads(found.out)
    assert results["labels"] == ["class a", "class b", "class c"]
    assert results["rows"] == {"test": 40}


def test_a_tagger_is_measured_by_its_entities(run, tagger, tmp_path) -> None:
    columns = tmp_path / "rows.conll"
    columns.write_text("Paris\tB-LOC\nwas\tO\nlovely\tO\n\nBerlin\tB-LOC\n")
    found = run("evaluate", tagger, "--data", columns)
    assert found.code == 0
    assert "token accuracy" in found.out
    assert "entity f1" in found.out


def test_evaluation_keeps_the_records_of_training(refused, model, rows) -> None:
    line = refused("evaluate", model, "--data", rows, *COLUMNS, "--output", model)
    assert "choose another --output" in line


def test_labels_the_model_never_saw_are_named(refused, model, tmp_path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("text,label\nthe film,class z\n")
    assert "class z" in refused("evaluate", model, "--data", table)


def test_data_are_described(run, rows) -> None:
    found = run("data", rows, *COLUMNS)
    assert "class a 18, class b 18" in found.out
    described = json.loads(run("data", rows, *COLUMNS, "--json").out)
    assert described["splits"]["train"]["rows"] + described["splits"]["validation"]["rows"] == 40
    assert run("data", rows, "--text", "nobody").code == 2


def test_a_reference_score_is_a_percentage(run, tmp_path) -> None:
    for name in ("train", "test"):
        lines = [
            f'{{"text": "{word} film {i}", "label": "{word}"}}' for i in range(9) for word in ("good", "bad")
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    assert "100.0%" in run("data", tmp_path, "--reference").out
    assert json.loads(run("data", tmp_path, "--reference", "--json").out)["reference"]["score"] == 1.0


@pytest.mark.parametrize("name", ["topics", "tagging"])
def test_an_exported_corpus_reads_back_the_same(run, refused, tmp_path, name) -> None:
    folder = tmp_path / "corpus"
    assert run("data", name, "--export", folder).code == 0
    corpus, read = load_dataset(name), load_dataset(folder)
    assert read.task == corpus.task
    assert set(read.label_names) == set(corpus.label_names)  # columns carry no order of labels
    assert read.splits() == corpus.splits()
    assert "not empty" in refused("data", name, "--export", folder)
    assert {path.suffix for path in Path(folder).iterdir()} == {".jsonl" if name == "topics" else ".conll"}


def test_the_demonstration_gets_its_folder_and_seed(run, monkeypatch, tmp_path) -> None:
    seen = []
    import splade.demo

    monkeypatch.setattr(splade.demo, "run", lambda output, console, seed: seen.append((output, seed)))
    assert run("demo", "--output", tmp_path, "--seed", "4").code == 0
    assert run("demo").code == 0
    assert seen == [(tmp_path, 4), (Path("results/demo"), 0)]
