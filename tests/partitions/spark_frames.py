"""Frames of Spark for tests."""

import pyarrow as pa


def to_spark(spark, frame, partitions=3):
    """The rows as a Spark frame, by Arrow, so that nulls, Decimals and integers stay as they
    are."""
    if frame is None:
        return None
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    return spark.createDataFrame(table).repartition(partitions)
