"""One Spark for all tests of the session, with two workers; what is slow in it is its start."""

from __future__ import annotations

import os
import sys

import pytest

from es_simhash.errors import EmbeddedServerError, MissingDependencyError
from es_simhash.servers.launch import bundled_java, find_jdk


@pytest.fixture(scope="session")
def spark():
    """A local Spark, whose tasks may fail three times, as on a cluster."""
    from pyspark.sql import SparkSession

    if not os.environ.get("JAVA_HOME"):
        try:
            java = find_jdk(17)
        except EmbeddedServerError:
            try:
                java = bundled_java()
            except (EmbeddedServerError, MissingDependencyError) as error:
                pytest.skip(f"no Java 17 or newer for Spark: {error}")
        os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "3",
    }
    builder = SparkSession.builder.master("local[2,4]").appName("es_simhash tests")
    session = builder.config(map=settings).getOrCreate()
    yield session
    session.stop()
