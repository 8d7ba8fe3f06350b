"""Masks hide ordinary tokens alone, and training on text makes it likelier, however often it is resumed."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from splade.data.tokens import ArraySource, Frame, TextSource, encoded
from splade.errors import ConfigError, TrainingError
from splade.models.backbone import load_backbone
from splade.training import adapt as adapting
from splade.training.adapt import Adapter, adapt, save_adapted
from splade.training.adapt_settings import Settings, optimizer
from splade.training.checkpoint import Checkpoints
from splade.training.held_out import fill_blanks, held_out_loss
from splade.training.masking import IGNORED, Masker, gather, mean_loss
from splade.training.progress import Progress
from splade.training.windows import Windows
from tests.tiny import FAMILIES, PADDED_ROWS, SENTENCES, TOKENIZER_OF, Sizes, tiny_backbone, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
FRAME = Frame.of(TOKENIZER)
SETTINGS = Settings("tiny", "toy", (16, 32), (1.0, 1.0), steps=12, tokens_per_step=128, learning_rate=3e-3)
LENGTHS, SHARES = (14, 30), (1.0, 3.0)


def new_backbone(family: str = "bert"):
    vocab = len(tiny_tokenizer(TOKENIZER_OF[family])) + PADDED_ROWS
    return tiny_backbone(family, vocab, initializer_range=0.05)


def toy(repeats: int = 40) -> np.ndarray:
    """A learnable text: ten sentences over and over."""
    order = np.random.default_rng(0).integers(len(SENTENCES), size=repeats)
    return np.concatenate(list(encoded((SENTENCES[i] for i in order), TOKENIZER)))


def trained(
    settings: Settings = SETTINGS, checkpoints: Checkpoints | None = None, backbone=None, source=None
):
    backbone = backbone or new_backbone()
    source = source or ArraySource(toy(), shard=300)
    Adapter(backbone, TOKENIZER, source, settings, Progress(), checkpoints).run()
    return backbone


def weights(backbone) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in backbone.mlm.named_parameters()}


def framed_batch() -> torch.Tensor:
    ids = torch.from_numpy(toy().astype(np.int32))
    return gather(ids, Windows(np.arange(0, 140, 14), np.full(10, 14)), 16, FRAME)[0]


@pytest.mark.parametrize("mixed", [True, False])
def test_special_tokens_are_never_masked_nor_put_in_and_the_rest_stays(mixed) -> None:
    ids, masker = framed_batch(), Masker(TOKENIZER, torch.device("cpu"))
    special = torch.isin(ids, torch.tensor(TOKENIZER.all_special_ids))
    assert special[:, 1:-1].any()  # boundaries within windows
    masked = masker(ids, ids.numel(), torch.Generator().manual_seed(0), mixed)  # asks for more than there is
    kept = masked.labels_N != IGNORED
    assert torch.equal(masked.at_N[kept].sort().values, (~special).flatten().nonzero()[:, 0])
    assert torch.equal(masked.labels_N[kept], ids.flatten()[masked.at_N[kept]])
    assert torch.equal(masked.input_ids_BL[special], ids[special])
    put = masked.input_ids_BL[~special]
    others = [j for j in TOKENIZER.all_special_ids if j != TOKENIZER.mask_token_id]
    assert not torch.isin(put, torch.tensor(others)).any()
    assert mixed != (put == TOKENIZER.mask_token_id).all()


def test_masks_hide_the_number_asked_for_in_parts_of_80_10_and_10() -> None:
    ids, masker = framed_batch().repeat(200, 1), Masker(TOKENIZER, torch.device("cpu"))
    masked = masker(ids, 4000, torch.Generator().manual_seed(0))
    assert (masked.labels_N != IGNORED).sum() == 4000 == len(masked.at_N.unique())
    put = masked.input_ids_BL.flatten()[masked.at_N]
    assert float((put == TOKENIZER.mask_token_id).float().mean()) == pytest.approx(0.8, abs=0.03)
    assert float((put == masked.labels_N).float().mean()) == pytest.approx(0.1, abs=0.03)


def test_room_for_more_masks_changes_shapes_and_nothing_else() -> None:
    ids, masker = framed_batch(), Masker(TOKENIZER, torch.device("cpu"))
    few, roomy = (masker(ids, 20, torch.Generator().manual_seed(0), False, room) for room in (0, 30))
    assert torch.equal(few.input_ids_BL, roomy.input_ids_BL)
    assert torch.equal(few.at_N, roomy.at_N[:20])
    assert (roomy.labels_N[20:] == IGNORED).all()
    assert len(roomy.at_N) == 30


def test_only_masked_positions_are_decoded_and_only_they_make_the_loss() -> None:
    backbone, ids = new_backbone(), framed_batch()
    masked = Masker(TOKENIZER, torch.device("cpu"))(ids, 20, torch.Generator().manual_seed(0))
    with Sizes() as sizes:
        h = backbone(masked.input_ids_BL, None)
        loss = mean_loss(h, masked.at_N, masked.labels_N, backbone.E_VH, backbone.e_V)
        (gradient,) = torch.autograd.grad(loss, h)
    shape = (*ids.shape, backbone.vocab_size)
    assert not any(found in (shape, (ids.numel(), shape[2])) for found in sizes.shapes)
    reached = gradient.flatten(0, 1).abs().sum(1) > 0
    assert reached.nonzero()[:, 0].tolist() == sorted(masked.at_N.tolist())
    logits = backbone.logits(masked.input_ids_BL, None).flatten(0, 1)[masked.at_N]
    assert loss.item() == pytest.approx(F.cross_entropy(logits, masked.labels_N).item(), rel=1e-5)


def test_losses_of_buckets_average_to_the_overall_loss() -> None:
    backbone, ids = new_backbone(), toy()
    found = held_out_loss(backbone, TOKENIZER, ids, 32, bucket=10, tokens_at_once=100)
    assert [(b.first, b.last) for b in found.buckets] == [(0, 9), (10, 19), (20, 29), (30, 31)]
    assert sum(b.masked for b in found.buckets) == found.masked
    assert sum(b.masked * b.loss for b in found.buckets) / found.masked == pytest.approx(found.loss)
    assert held_out_loss(backbone, TOKENIZER, ids, 32, bucket=10, tokens_at_once=100) == found
    assert held_out_loss(backbone, TOKENIZER, ids, 32, seed=1) != found


def test_a_model_that_knows_the_masked_words_has_no_loss() -> None:
    """The held-out loss of a uniform guess is log V, so no word is told to the model."""
    backbone = new_backbone()
    with torch.no_grad():
        backbone.E_VH.zero_()
        backbone.e_V.zero_()
    found = held_out_loss(backbone, TOKENIZER, toy(), 32)
    assert found.loss == pytest.approx(np.log(backbone.vocab_size), rel=1e-5)


@pytest.mark.parametrize("joined", [True, False])
def test_a_word_is_learned_from_its_neighbours(joined) -> None:
    """Documents repeat one of eight words, so a model that only counts words keeps a loss of log 8."""
    words = ["film", "slow", "clever", "hotel", "battery", "parcel", "budget", "cup"]
    drawn = np.random.default_rng(0).choice(words, size=200)
    ids = np.concatenate(list(encoded((" ".join([word] * 28) for word in drawn), TOKENIZER)))
    source = ArraySource(ids, FRAME.boundary)
    settings = dataclasses.replace(SETTINGS, steps=80, tokens_per_step=512, learning_rate=1e-2, joined=joined)
    found = adapt(new_backbone(), TOKENIZER, source, source.hold_out(300), settings, Progress())
    assert [one.length for one in found.before] == [16, 32]
    for before, after in zip(found.before, found.after, strict=True):
        assert after.loss < np.log(len(words)) < before.loss
        assert after.accuracy > before.accuracy + 0.2
    assert (found.steps, found.tokens) == (80, 80 * 512)
    assert [len(filled.words) for filled in found.samples_after] == [5] * 4


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_and_fills_blanks(family) -> None:
    tokenizer, backbone = tiny_tokenizer(TOKENIZER_OF[family]), new_backbone(family)
    ids = np.concatenate(list(encoded(SENTENCES * 3, tokenizer)))
    before = weights(backbone)
    settings = dataclasses.replace(SETTINGS, steps=2, joined=family != "modernbert")
    Adapter(backbone, tokenizer, ArraySource(ids), settings, Progress()).run()
    assert any(not torch.equal(p, before[name]) for name, p in weights(backbone).items())
    assert all(p.isfinite().all() for p in weights(backbone).values())
    assert fill_blanks(backbone, tokenizer, ["the {} was slow"], top=3)[0].text == "the ___ was slow"


class KilledError(Exception):
    pass


@pytest.mark.parametrize("killed_at", [1, 5, 11])
def test_a_resumed_run_reaches_the_same_weights_to_the_bit(tmp_path, monkeypatch, killed_at) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES * 8), encoding="utf-8")
    settings = dataclasses.replace(SETTINGS, checkpoint_steps=2)

    def run(checkpoints: Checkpoints | None):
        return trained(settings, checkpoints, source=TextSource(path, None, TOKENIZER, shard=200))

    expected, checkpoints, step = weights(run(None)), Checkpoints(tmp_path / "kept"), Adapter._step

    def killing(self, *arguments):
        if self.state.step == killed_at:
            raise KilledError
        return step(self, *arguments)

    monkeypatch.setattr(Adapter, "_step", killing)
    with pytest.raises(KilledError):
        run(checkpoints)
    monkeypatch.setattr(Adapter, "_step", step)
    taken = []
    monkeypatch.setattr(Adapter, "_step", lambda self, *a: taken.append(self.state.step) or step(self, *a))
    found = weights(run(checkpoints))
    assert taken[0] == killed_at // 2 * 2
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_steps_take_the_text_on_where_a_shard_ends_and_pass_after_pass() -> None:
    """The carried tail makes one stream of all shards and passes: nothing is lost or repeated."""
    ids = np.arange(20, 120, dtype=np.uint16)
    adapter = Adapter(new_backbone(), TOKENIZER, ArraySource(ids, shard=33), SETTINGS, Progress())
    adapter.batches = [1, 1]
    seen = {}
    for k, windows, shard in itertools.islice(adapter._steps(), 60):
        text = gather(shard, windows, SETTINGS.lengths[k], FRAME)[0][0, 1:-1]
        seen.setdefault((adapter.state.place, int(windows.starts[0])), text)
        adapter.state.done += 1
    ordered = sorted(seen, key=lambda key: (key[0].number, key[0].at, key[1]))
    whole = torch.cat([seen[key] for key in ordered if key[0].number < 3])
    assert torch.equal(whole, torch.from_numpy(np.tile(ids, 3).astype(np.int64))[: len(whole)])
    assert len(whole) > 3 * len(ids) - min(LENGTHS)


def test_a_run_is_resumed_only_with_its_own_settings(tmp_path) -> None:
    checkpoints = Checkpoints(tmp_path / "kept")
    settings = dataclasses.replace(SETTINGS, steps=4, checkpoint_steps=2)
    trained(settings, checkpoints)
    with pytest.raises(ConfigError, match=r"had rate 0\.25, not 0\.3"):
        trained(dataclasses.replace(settings, rate=0.3), checkpoints)


def test_the_rate_falls_to_nothing_with_the_time(monkeypatch) -> None:
    clock = itertools.count(0.0, 0.5)
    monkeypatch.setattr(adapting.time, "perf_counter", lambda: next(clock))
    backbone, rates = new_backbone(), []
    settings = dataclasses.replace(SETTINGS, steps=None, seconds=10.0, warmup_steps=4)
    adapter = Adapter(backbone, TOKENIZER, ArraySource(toy()), settings, Progress())
    step = adapter.optimizer.step
    adapter.optimizer.step = lambda: (rates.append(adapter.optimizer.param_groups[0]["lr"]), step())
    state = adapter.run()
    assert state.step == len(rates) == 20
    assert rates[:4] == sorted(rates[:4])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[-1] == pytest.approx(3e-3 / 20)
    assert max(rates) <= 3e-3


def test_wider_encoders_learn_slower_unless_told() -> None:
    settings = dataclasses.replace(SETTINGS, learning_rate=None)
    rates = [optimizer(tiny_backbone(hidden_size=width), settings).defaults["lr"] for width in (32, 64)]
    assert rates[0] == pytest.approx(4 * rates[1])


def test_a_loss_that_is_no_number_ends_the_run_before_a_checkpoint(tmp_path) -> None:
    backbone, checkpoints = new_backbone(), Checkpoints(tmp_path / "kept")
    with torch.no_grad():
        backbone.E_VH[20:].fill_(float("nan"))
    with pytest.raises(TrainingError, match="the loss is nan"):
        trained(dataclasses.replace(SETTINGS, checkpoint_steps=1), checkpoints, backbone)
    assert checkpoints.latest() is None


def test_weights_that_are_no_numbers_are_never_kept(tmp_path, monkeypatch) -> None:
    checkpoints, settings = Checkpoints(tmp_path / "kept"), dataclasses.replace(SETTINGS, checkpoint_steps=1)
    monkeypatch.setattr(
        adapting.optim, "clip", lambda parameters: parameters[0].grad.fill_(float("inf")).mul_(0)
    )
    with pytest.raises(TrainingError, match="a weight is no number, at step 1"):
        trained(settings, checkpoints)
    assert checkpoints.latest() is None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"lengths": (32, 16)}, "rise within 3 to 64"),
        ({"lengths": (16, 65)}, "rise within"),
        ({"lengths": ()}, "rise within"),
        ({"shares": (1.0,)}, "one for each length"),
        ({"shares": (1.0, 0.0)}, "one for each length"),
        ({"tokens_per_step": 31}, "a window, 32"),
        ({"rate": 0.0}, "masked share"),
        ({"steps": None}, "steps or seconds"),
        ({"steps": -1}, "steps or seconds"),
    ],
)
def test_settings_that_cannot_be_trained_with_are_refused(change, line) -> None:
    with pytest.raises(ConfigError, match=line):
        dataclasses.replace(SETTINGS, **change).check(64, 2)


@pytest.mark.parametrize("half", [False, True])
def test_the_folder_is_a_masked_lm_again(tmp_path, half) -> None:
    backbone = new_backbone()
    save_adapted(backbone, TOKENIZER, tmp_path / "lm", {"steps": 1}, half)
    again, tokenizer = load_backbone(tmp_path / "lm", check=False)
    for name, value in weights(backbone).items():
        assert torch.equal(weights(again)[name], value.half().float() if half else value)
    assert tokenizer(SENTENCES[0])["input_ids"] == TOKENIZER(SENTENCES[0])["input_ids"]
    assert (tmp_path / "lm" / "adapt.json").read_text(encoding="utf-8") == '{\n  "steps": 1\n}\n'


def test_a_compiled_run_takes_the_same_steps(monkeypatch) -> None:
    """With a compiler that changes nothing: the encoder is compiled while it trains and not after."""
    monkeypatch.setattr(torch, "compile", lambda call, **_: torch._dynamo.disable(call))
    backbone, seen = new_backbone(), []
    monkeypatch.setattr(type(backbone.mlm.base_model), "compile", lambda self, **how: seen.append(how))
    found = weights(trained(dataclasses.replace(SETTINGS, steps=2, compile=True), backbone=backbone))
    assert seen == [{"dynamic": False}]
    assert backbone.mlm.base_model._compiled_call_impl is None
    expected = weights(trained(dataclasses.replace(SETTINGS, steps=2)))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
