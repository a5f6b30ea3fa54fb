"""Places of Parquet files: a file, a folder or a pattern, in a file system whose paths are parted by `/`."""

import re


def folder_of(path: str) -> str:
    """Return the folder that all files of a pattern are below, or the path itself."""
    before, star, _ = path.partition("*")
    return before.rpartition("/")[0] if star else path


def pattern_of(path: str) -> re.Pattern[str] | None:
    """Return what the paths of a pattern's files match, None if the path is no pattern."""
    if "*" not in path:
        return None
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*)", path)), re.S)


def is_passed_over(path: str) -> bool:
    """Tell whether a file is a writer's note and no data, by its path within its folder."""
    return any(part.startswith((".", "_")) for part in path.strip("/").split("/"))
