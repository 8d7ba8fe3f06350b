"""What can go wrong, as one tree; every message is one line that says what to do next.

LexicalError
├── DataError    a file, column, label or text that cannot be used
├── ConfigError  a setting that is unknown or out of range
├── ModelError   a checkpoint or folder that is damaged, missing or does not fit
└── TrainingError  a run that cannot go on
"""


class LexicalError(Exception):
    """A mistake the user can mend; command lines print it without a traceback and exit with 2."""


class DataError(LexicalError):
    """A file, column, label or text that cannot be used."""


class ConfigError(LexicalError):
    """A setting that is unknown or out of range."""


class ModelError(LexicalError):
    """A checkpoint or folder that is damaged, missing or does not fit."""


class TrainingError(LexicalError):
    """A training run that cannot go on."""
