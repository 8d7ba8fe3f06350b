"""Settings of the studies: experiments that ask a trained model more than how good it is."""

from __future__ import annotations

from pydantic import Field

from splade.config.strict import Strict


class FaithfulnessConfig(Strict):
    """How explainers are compared."""

    texts: int = Field(50, ge=1, description="test texts that every explainer explains")
    planted_texts: int = Field(
        50, ge=0, description="texts whose deciding words are known; 0 leaves them out"
    )
    explainers: list[str] = Field([], description="which to run; empty: all")
    ig_steps: int = Field(50, ge=1, description="steps of integrated gradients")
    lime_samples: int = Field(5000, ge=1, description="samples of LIME for each text")
    shap_evaluations: int = Field(500, ge=1, description="evaluations of SHAP for each text")


class NeedleConfig(Strict):
    """Where a deciding sentence is hidden in long texts."""

    lengths: list[int] = Field([128, 256, 512, 1024], description="tokens of a text, one test for each")
    depths: list[float] = Field([0.0, 0.25, 0.5, 0.75, 1.0], description="share of filler before the needle")
    texts: int = Field(20, ge=1, description="texts at each length and depth")
    filler: str | None = Field(None, description="file of plain text to hide in; empty: embedded texts")


class SurgeryConfig(Strict):
    """Which words are taken out of a model, and on what that is measured."""

    words: list[str] = Field([], description="the concept; empty: proposed from the groups of the data")
    closure: int = Field(30, ge=0, description="related words proposed for removal with the concept")
    accuracy_cost: float = Field(0.01, ge=0, le=1, description="accuracy that the removals may cost in all")
    retrain: bool = Field(False, description="train once more without the words, to compare")
    test_path: str | None = Field(None, description="rows to measure bias on; empty: the test rows")
    group: str | None = Field(None, description="column that names the group of a row (guessed)")
    positive: str | None = Field(None, description="label whose errors are compared (the last of two)")
