"""
A night of docs/removal.md as a DAG of Airflow 3. Its workers need es-simhash and the script nightly in their PATH, the
folder, which only one of them uses at a time, and what /etc/es-simhash/nightly.env has, in their environment.
"""

# ruff: noqa: INP001 - a file that Airflow reads
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    "es_simhash_nightly",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="nightly",
        bash_command="nightly news /var/lib/es-simhash",
        retries=1,
        retry_delay=timedelta(minutes=10),
        execution_timeout=timedelta(hours=6),
    )
