"""Recipes: every published system and ours, as values of one loop. `docs/recipes.md` says what each changes.

    warm-up       CE  +  always-terms  +  λ_o · outside
    constrained   (keep + λ) · CE  +  Σ weight · term / scale  +  λ_o · outside,      CE <= τ held by λ

`outside` is the grounding constraint of the honesty mode, whatever the recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from splade.errors import ConfigError

Rates = Literal["adamw-linear", "adamw-cosine", "schedule-free"]
WHOLE = 16.0  # widths of a surrogate beyond which a sigmoid is 0 or 1 to float32: a window that cuts nothing


@dataclass(frozen=True)
class Recipe:
    """One system: its gate, its terms and their weights, how they are weighed, and how it learns."""

    name: str
    source: str
    gate: Literal["jumprelu", "drelu", "gated_jumprelu"] = "jumprelu"
    saturate: bool = False
    window: float = 4.0
    terms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    always: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    weighing: Literal["scaled", "uncertainty"] = "scaled"
    keep: float = 0.0
    relax: bool = False
    optimiser: Rates = "adamw-linear"
    weight_ema: bool = False
    centralise: bool = False

    @property
    def constrained(self) -> bool:
        """Whether there is a second phase, in which terms are minimised subject to CE <= τ."""
        return bool(self.terms)


def _terms(**weights: float) -> Mapping[str, float]:
    return MappingProxyType(weights)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "default",
            "this package",
            terms=_terms(completeness_kl=0.05, separation_contrastive=0.05),
            always=_terms(word_budget=1.0),
            keep=1.0,
        ),
        Recipe(
            "cis",
            "Circuit-Integrated SPLADE",
            gate="drelu",
            saturate=True,
            terms=_terms(completeness_ce=1.0, separation_cosine=1.0, sharpness=1.0, df_flops=1.0),
            weighing="uncertainty",
            optimiser="adamw-cosine",
            weight_ema=True,
            centralise=True,
        ),
        Recipe(
            "lexical-sae",
            "Lexical-SAE",
            gate="drelu",
            terms=_terms(completeness_ce=1.0, separation_cosine=1.0, l1_l0=1.0),
            relax=True,
            optimiser="adamw-cosine",
            weight_ema=True,
            centralise=True,
        ),
        Recipe(
            "cajt",
            "Circuit-Anchored JumpReLU Transcoder",
            window=WHOLE,
            terms=_terms(completeness_kl=1.0, separation_contrastive=1.0, gate_l0=1.0, frequency=1.0),
            optimiser="schedule-free",
            centralise=True,
        ),
        Recipe(
            "ltt",
            "Lexical Terminal Transcoder",
            gate="gated_jumprelu",
            window=WHOLE,
            terms=_terms(completeness_kl=1.0, separation_contrastive=1.0, gate_l0=1.0),
            optimiser="schedule-free",
            centralise=True,
        ),
        Recipe("baseline", "cross-entropy alone through the same bottleneck"),
        Recipe("dense", "the same backbone with an ordinary linear head"),
    )
}


def find_recipe(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise ConfigError(f"no recipe '{name}': choose one of {', '.join(RECIPES)}")
    return RECIPES[name]
