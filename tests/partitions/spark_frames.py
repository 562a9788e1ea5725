"""Frames of Spark for tests."""

import pyarrow as pa

# Settings of a session whose queries have few rows. Compiling the code of a query takes longer than
# running it (the session of test_cluster compiles), and so does a worker that imports pandas.
QUICK = {
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": "warm_daemon",
}


def to_spark(spark, frame, partitions=2):
    """The rows as a Spark frame, by Arrow, so that nulls, Decimals and integers stay as they
    are."""
    if frame is None:
        return None
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    return spark.createDataFrame(table).repartition(partitions)
