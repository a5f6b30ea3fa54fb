"""Why the client sends nothing."""


class TaskRefused(ValueError):
    """A task cannot be meant, or states an ε that is not that of its thresholds; nothing was sent."""


class AnswerRefused(ValueError):
    """An answer is none that the task allows; nothing was sent."""
