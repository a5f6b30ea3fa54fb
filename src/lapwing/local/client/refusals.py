"""Why the client sends nothing."""


class TaskRefused(ValueError):
    """The task makes no sense, or states another ε than its thresholds have; nothing was sent."""


class AnswerRefused(ValueError):
    """The task does not allow this answer; nothing was sent."""
