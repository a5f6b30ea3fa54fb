"""The lab: what differential privacy promises and what attacks can do, tried out on the real engine.

Each experiment prints a predicted figure beside the observed one, draws a chart, and says in plain words what it shows.
Naive targets, which attacks succeed against, live here and nowhere else.
"""

from lapwing.lab.agreement import Check
from lapwing.lab.experiment import Experiment, Finding, Settings
from lapwing.lab.registry import experiments, run
from lapwing.lab.students import students
from lapwing.lab.sweeps import sweep

__all__ = ["Check", "Experiment", "Finding", "Settings", "experiments", "run", "students", "sweep"]
