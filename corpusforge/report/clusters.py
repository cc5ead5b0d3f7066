"""The largest clusters of a deduplicated corpus: which document stays, how many are like it, and how like.

Comes in: the folder ``clusters/`` of a stage. Goes out: lines for a terminal, the largest clusters first. The one
decision: a cluster is shown by its survivor and the members least like it, as these tell whether the threshold is low.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.text import Text

from corpusforge import shards
from corpusforge.report.plain import visible
from corpusforge.schemas import CLUSTERS

MEMBERS = 3
"""Members named for each cluster."""


def is_clusters(schema: pa.Schema) -> bool:
    """Whether a table of this schema is CLUSTERS."""
    return bool(set(CLUSTERS.names) == set(schema.names))


def show_clusters(folder: str, names: list[str], count: int, skip: int) -> list[RenderableType]:
    """``count`` clusters behind the first ``skip``. ``names``: of the shards in the folder."""
    batches = [batch for name in names for batch in shards.read_shard(shards.join(folder, name))]
    table = pa.Table.from_batches(batches)
    is_survivor = pc.equal(table["document"], table["survivor"])  # like itself: no member that tells anything
    likeness = pc.if_else(is_survivor, pa.scalar(None, table["similarity"].type), table["similarity"])
    table = table.set_column(table.schema.get_field_index("similarity"), "similarity", likeness)
    kinds = [("size", "max"), ("similarity", "min"), ("similarity", "mean")]
    found = table.group_by("survivor").aggregate(kinds)
    found = found.sort_by([("size_max", "descending"), ("survivor", "ascending")])
    chosen = found.slice(skip, count)
    near = (
        table.filter(pc.is_in(table["survivor"], chosen["survivor"].combine_chunks())).sort_by("similarity").to_pylist()
    )
    if not chosen.num_rows:
        return [Text(f"{folder}: no clusters behind the first {skip}")]
    last = skip + chosen.num_rows
    title = f"{found.num_rows:,} clusters of {table.num_rows:,} documents; {skip + 1} to {last}, the largest first"
    shown: list[RenderableType] = [Text(title, "bold")]
    for row in chosen.to_pylist():
        line = Text(visible(row["survivor"]), "green")
        line.append(f"  {row['size_max']:,} documents", "")
        if row["similarity_mean"] is not None:  # None: of the cluster its survivor alone is here
            least, mean = row["similarity_min"], row["similarity_mean"]
            line.append(f", similarity to it {least:.2f} and up, {mean:.2f} on average", "")
        shown.append(line)
        members = [m for m in near if m["survivor"] == row["survivor"] != m["document"]]
        shown += [Text(f"    {m['similarity']:.2f}  {visible(m['document'])}") for m in members[:MEMBERS]]
    return [*shown, Text("inspect STAGE --document ID shows one of them", "dim")]
