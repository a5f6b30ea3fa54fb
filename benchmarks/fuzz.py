"""Random questions over neighbouring tables, more than the tests ask, and how many a second.

    python benchmarks/fuzz.py [questions]

Three of ten are about linked tables, and one is about rows that meet others by comparisons. What is asked is a function
of its number and of LAPWING_SEED alone, so this begins with what the long run of the tests asks, and goes on. See
`tests/support/query/fuzzing.py`. A question that fails is printed, and ends in an exit status that is not 0.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

QUESTIONS = 50_000
NAMES = ("test_fuzz", "test_linked_fuzz", "test_matched_fuzz")
ROOT = Path(__file__).parents[1]
TESTS = [f"tests/query/{name}.py::test_random_questions" for name in NAMES]


def main(questions: int) -> int:
    """Ask in as many processes as there are cores."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "long", *TESTS]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "LAPWING_FUZZ": str(questions)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    if ended.returncode:
        print(ended.stdout[-20_000:], ended.stderr, file=sys.stderr)
    found = "something was found" if ended.returncode else "nothing moved further than stated"
    print(f"{questions:,} random questions: {found}; {questions / seconds:.0f} a second on {os.cpu_count()} cores")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS))
