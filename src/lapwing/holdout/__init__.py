"""A holdout that may be asked again and again, each question chosen after the answers before: what it says stays true.

    >>> import lapwing as lw
    >>> holdout = lw.holdout.ReusableHoldout(people, questions=500)
    >>> answer = holdout.query(lambda rows: rows["age"] > 65)
    >>> answer.value, answer.interval()

An answer's interval is for the *population* that the people were drawn from. All intervals together hold with the
stated confidence, for any choice of questions. `how_many` says beforehand how many questions that is good for.
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

if TYPE_CHECKING:
    from lapwing.holdout.answer import HoldoutAnswer as HoldoutAnswer
    from lapwing.holdout.planning import Outlook as Outlook
    from lapwing.holdout.planning import how_many as how_many
    from lapwing.holdout.planning import outlook as outlook
    from lapwing.holdout.planning import width_chart as width_chart
    from lapwing.holdout.reusable import ReusableHoldout as ReusableHoldout

__all__, __getattr__, __dir__ = exports(
    __name__,
    {
        "answer": "HoldoutAnswer",
        "planning": "Outlook how_many outlook width_chart",
        "reusable": "ReusableHoldout",
    },
)
