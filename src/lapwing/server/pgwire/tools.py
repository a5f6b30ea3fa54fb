"""The tool that sends a query, by the name that a PostgreSQL client gives itself, for the metrics.

A client may call itself anything. So only names of a fixed list become labels, and all others are `other`.
"""

from typing import Final

TOOLS: Final = (
    "dbeaver", "datagrip", "dbt", "excel", "grafana", "looker", "metabase", "pgadmin", "pgcli", "power bi", "psql",
    "superset", "tableau", "psqlodbc", "postgresql jdbc driver",
)  # fmt: skip
"""The first words of the names of tools and drivers, in small letters."""
OTHER: Final = "other"


def tool_of(application_name: str) -> str:
    """Return the label for the `application_name` of a client."""
    name = application_name[:100].lower().removeprefix("apache ").removeprefix("microsoft ")
    return next((tool for tool in TOOLS if name.startswith(tool)), OTHER)
