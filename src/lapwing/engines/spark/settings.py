"""The settings under which Spark runs: what printed SQL means rests on some, and that nothing is written on others."""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        # Otherwise `FROM rows WHERE (member)` calls the rows WHERE and their column member, and leaves no row out.
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",  # a text with ${…} in it is that text
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.groupByOrdinal": "true",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.mergeSchema": "false",
        "spark.sql.parquet.binaryAsString": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # days are days; it raises at old ones otherwise
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.filterPushdown": "false",  # a file's statistics decide about no row
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
        # It adds and multiplies in another order, which may leave a type's range where the written order does not.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    }
)
"""What the printed SQL rests on, beside Spark's defaults."""
_OPERATORS: Final = ("spark.sql.adaptive.", "spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionBytes",
                     "spark.sql.autoBroadcastJoinThreshold", "spark.sql.warehouse.dir",
                     "spark.sql.catalogImplementation", "spark.sql.artifact.", "spark.sql.ui.",
                     "spark.sql.parser.manageParserCaches", "spark.sql.parser.parserDfaCacheFlush")  # fmt: skip
_NO_LOGS: Final = "org.slf4j.helpers.NOP_FallbackServiceProvider"
CLOSED: Final[Mapping[str, str]] = {
    "spark.app.name": "lapwing",
    # Not the level of logs, which a driver tells its executors too late or not at all: there is nothing that logs.
    "spark.driver.defaultJavaOptions": f"-Dslf4j.provider={_NO_LOGS}",
    "spark.executor.defaultJavaOptions": f"-Dslf4j.provider={_NO_LOGS}",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""What an application must not write of rows and queries."""
PARSER: Final[Mapping[str, str]] = {
    # A parser remembers what it looked ahead at in each query, to read the next one faster. Without, it reads the same.
    # By default it never forgets: 105 random queries left 137 MB, in 25,551 states. Spark takes a state for 9.7 kB. To
    # begin anew costs a long query 0.1 s.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "10",
}
"""A parser may remember 10 hundredths of the driver's memory, and one query more."""
LEAN: Final[Mapping[str, str]] = {
    **PARSER,
    # Each side of a join that is sent to all takes a page of the driver's memory, however few rows it has, until the
    # next collection of garbage. Questions join dozens, and by default a page is up to 64 MB.
    "spark.buffer.pageSize": "1m",
    # For its pages, which are closed, a driver keeps the plans and metrics of the last 1,000 executions and the stages
    # of the last 1,000 jobs. Of the plans of queries that is more than a gigabyte.
    "spark.sql.ui.retainedExecutions": "4",
    "spark.ui.retainedJobs": "4",
    "spark.ui.retainedStages": "4",
    "spark.ui.retainedTasks": "1000",
}
"""What an application needs less memory with, unless its own settings say otherwise."""
_LOGGERS: Final = ("SQLQueryContextLogger", "pyspark.sql.connect.logging")
"""PySpark's of errors, and that of the client of Spark Connect, which an environment variable opens."""


def foreign(settings: Mapping[str, str]) -> list[str]:
    """Return the settings that could change what SQL means and are none of those that it rests on."""
    return sorted(
        name
        for name in settings
        if name.startswith("spark.sql.") and name not in SETTINGS and not name.startswith(_OPERATORS)
    )


def shut_logger() -> None:
    """Keep PySpark from writing the text of an error, or of a query, to stderr."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        logger = PySparkLogger.getLogger(name)
        logger.disabled = True
        logger.addFilter(_nothing)


def _nothing(_record: logging.LogRecord) -> bool:
    return False
