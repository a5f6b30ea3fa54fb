"""The dialect of SQLAlchemy 2, which needs the extra `sqlalchemy`. SQLAlchemy finds it by its entry point."""

from importlib.util import find_spec

if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(
        "The dialect needs SQLAlchemy, which is not installed. Run `pip install 'lapwing-dp[sqlalchemy]'`.",
        name="sqlalchemy",
    )
