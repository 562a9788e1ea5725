"""The process that Spark forks its Python workers from, with recdf imported before: a worker that
imports pandas on its own takes a second for a task of milliseconds, and there are hundreds."""

import pandas.core.arrays.arrow  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyspark.sql.conversion  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import recdf.partitions.buckets  # noqa: F401

manager()
