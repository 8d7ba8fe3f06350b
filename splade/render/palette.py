"""The colours of static pictures; they are the light ones of the style sheet."""

INK, MUTED, RULE, LINE, CARD = "#1d2125", "#5c646d", "#b9c0c7", "#e3e6e9", "#ffffff"
FOR, AGAINST = "#16795c", "#b8423a"


def hue(value: float) -> str:
    """The colour of a contribution for or against."""
    return FOR if value > 0 else AGAINST
