"""The datasets that a task reads and writes, for OpenLineage."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from airflow_provider_sms.hooks.sql_source import SqlSource

log = logging.getLogger(__name__)

_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Other schemes of an object store, and the one that OpenLineage uses for it."""


def lineage_of(task: Any) -> Any:
    """Return the datasets of a task, as OpenLineage's provider for Airflow asks for them.

    The inputs are the files of the source, or the tables that its query names; rows in memory are left out. The output
    is the report. The query is a facet of the job. Assets that the task declares are added, since the provider looks at
    them only if this returns nothing.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset, SQLJobFacet
    from airflow.providers.common.compat.openlineage.utils.utils import translate_airflow_asset
    from airflow.providers.common.compat.sdk import Asset
    from airflow.providers.openlineage.extractors import OperatorLineage

    def all_of(named: list[tuple[str, str]], declared: Any) -> list[Any]:
        assets = [translate_airflow_asset(each, None) for each in declared if isinstance(each, Asset)]
        found = {(each.namespace, each.name): each for each in assets if each is not None}
        return list({**{name: Dataset(*name) for name in named}, **found}.values())

    source = task.source
    inputs, outputs = all_of(datasets(source), task.inlets), all_of(datasets(task.report), task.outlets)
    if not isinstance(source, SqlSource):
        return OperatorLineage(inputs=inputs, outputs=outputs)
    facets = {"sql": SQLJobFacet(query=source.shown_sql)}
    return OperatorLineage(inputs=[*_tables_of(source), *inputs], outputs=outputs, job_facets=facets)


def _tables_of(source: SqlSource) -> list[Any]:
    """Return the tables that a query names, as far as OpenLineage's parser and the connection's hook can tell."""
    from airflow.providers.common.compat.openlineage.utils.sql import get_openlineage_facets_with_sql

    try:
        found = get_openlineage_facets_with_sql(source.hook(), source.sql, source.conn_id, None)
    except Exception as error:  # noqa: BLE001 - each hook raises errors of its own, and lineage must fail no task
        log.info("The tables of the query are not known to lineage: %s", type(error).__name__)
        return []
    return [] if found is None else list(found.inputs)


def datasets(place: Any) -> list[tuple[str, str]]:
    """Return the namespace and the name of each dataset that a path, a URI, or a list of them stands for.

    They are named as OpenLineage names datasets: ``file`` and the absolute path, or ``s3://bucket`` and the key. A
    directory or a glob is one dataset. Rows in memory are not a dataset.
    """
    if isinstance(place, (list, tuple)):
        return [name for each in place for name in datasets(each)]
    if hasattr(place, "uri"):
        place = place.uri
    if not (isinstance(place, (str, os.PathLike)) or hasattr(place, "fs")):
        return []
    scheme, is_uri, rest = str(place).partition("://")
    if not is_uri:
        at_home = os.path.expanduser(scheme)  # noqa: PTH111 - that of pathlib fails for an unknown user
        return [("file", str(Path(at_home).absolute()))]
    if scheme in ("http", "https"):
        rest = rest.partition("?")[0]  # it may hold a signature
    host, _, path = rest.partition("/")
    if scheme == "file":
        return [("file", f"/{path}")]
    # The text before the @ names an Airflow connection.
    return [(f"{_SCHEMES.get(scheme, scheme)}://{host.rpartition('@')[2]}", path or "/")]
