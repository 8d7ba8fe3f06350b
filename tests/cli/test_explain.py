"""Explanations on a terminal, as JSON lines, as a page and as a picture."""

import math

import pytest

from splade.inference import Predictor
from splade.mechanistic.attribution import METHODS
from tests.cli.conftest import saved
from tests.tiny import tiny_model

TEXTS = ["the film was a charming comedy", "Paris was lovely", "", "👍"]


def test_the_terminal_shows_the_sum_without_colour_codes_in_a_pipe(run, model) -> None:
    found = run("explain", model, *TEXTS)
    assert found.code == 0
    assert found.out.count("logit") == len(TEXTS)
    assert "\x1b" not in found.out
    assert "\x1b" in run("explain", model, *TEXTS, "--color", "always").out


def test_json_words_sum_to_the_logit(run, model) -> None:
    found = run("explain", model, *TEXTS, "--json")
    assert [line["text"] for line in found.lines] == TEXTS
    for line in found.lines:
        total = line["bias"] + math.fsum(word["contribution"] for word in line["words"])
        assert total == pytest.approx(line["logit"], abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_its_name(run, model, method) -> None:
    [line] = run("explain", model, TEXTS[0], "--json", "--method", method).lines
    assert line["method"] == method


def test_a_class_may_be_named(run, refused, model) -> None:
    [line] = run("explain", model, TEXTS[0], "--json", "--class", "class c").lines
    assert line["explained"] == "class c"
    line = refused("explain", model, TEXTS[0], "--class", "clas c")
    assert "choose one of class a, class b, class c" in line


def test_a_counterfactual_says_whether_it_is_proved(run, model) -> None:
    [line] = run("explain", model, TEXTS[0], "--json", "--counterfactual").lines
    flip = Predictor.from_pretrained(model).counterfactual(TEXTS[0])
    assert line["counterfactual"]["words"] == flip.words
    assert line["counterfactual"]["minimal"] == flip.minimal
    assert "tried)." in run("explain", model, TEXTS[0], "--counterfactual").out


def test_top_limits_the_words_shown_but_not_the_json(run, model) -> None:
    assert "more word" in run("explain", model, TEXTS[0], "--top", "1").out
    [line] = run("explain", model, TEXTS[0], "--top", "1", "--json").lines
    assert len(line["words"]) == line["active_words"] > 1
    assert run("explain", model, TEXTS[0], "--top", "0").code == 2


def test_a_page_holds_every_explanation_and_no_live_markup(run, tmp_path) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    model = tiny_model()
    model.config.label_names = [f"{hostile}{i}" for i in range(3)]
    folder, page = saved(model, tmp_path / "model"), tmp_path / "why.html"
    found = run("explain", folder, hostile, TEXTS[0], "--html", page, "--counterfactual")
    assert (found.code, found.out) == (0, "")
    written = page.read_text(encoding="utf-8")
    assert "<script" not in written
    assert "<img" not in written
    assert "&lt;script" in written
    assert "charming" in written


def test_a_picture_holds_one_explanation(run, refused, model, tmp_path) -> None:
    picture = tmp_path / "why.svg"
    assert run("explain", model, "a <b> film", "--svg", picture).code == 0
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert "use --html" in refused("explain", model, *TEXTS, "--svg", tmp_path / "two.svg")
    assert not (tmp_path / "two.svg").exists()


def test_a_tagger_explains_each_entity(run, refused, tagger) -> None:
    found = run("explain", tagger, "Paris was lovely", "--json")
    assert found.lines
    assert all(line["row"] and line["prediction"] != "O" for line in found.lines)
    every = run("explain", tagger, "Paris was lovely", "--json", "--class", "O")
    assert len(every.lines) == 3
    assert "leave it out" in refused("explain", tagger, "Paris", "--counterfactual")


def test_a_file_is_explained_line_by_line(run, model, tmp_path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    assert [line["text"] for line in run("explain", model, "--input", lines, "--json").lines] == TEXTS
