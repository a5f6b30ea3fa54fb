"""`python -m lapwing` is the `lapwing` command."""

from lapwing.cli import run

if __name__ == "__main__":
    run()
