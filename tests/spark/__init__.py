"""The tests of Spark, which share one JVM: they are run by themselves (`make test`), and skipped without Java."""
