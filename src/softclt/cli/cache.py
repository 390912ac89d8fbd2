"""``cache list``, ``verify`` and ``clear``: the distances that fits have kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.output import new_table, print_json, print_table, say

cache = typer.Typer(rich_markup_mode=None)


@cache.callback(
    invoke_without_command=True,
    short_help="See, check or clear the distances that were kept.",
    epilog=options.examples(
        "softclt cache list",
        "softclt cache verify",
        "softclt cache verify --folder distances/",
        "softclt cache clear",
    ),
)
def root(context: typer.Context) -> None:
    """You wonder what was kept, and whether it is sound: distances that fits have computed."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache.command("list", short_help="What is kept, and how much space it takes.")
def list_stores(as_json: options.Json = False) -> None:
    """You wonder what takes the space: all that is kept, the last used first."""
    from datetime import datetime

    from softclt.distances.cache import cache_folder, cache_limit, cached_stores, last_use

    entries: list[dict[str, Any]] = [
        {
            "key": store.folder.name,
            "metric": store.manifest["metric"],
            "series": len(store),
            "bytes": store.n_bytes,
            "complete": 1 - len(store.missing()) / len(store.tiles()),
            "last_use": datetime.fromtimestamp(last_use(store)).isoformat(" ", "minutes"),
        }
        for store in cached_stores()
    ]
    if as_json:
        print_json({"folder": str(cache_folder()), "limit": cache_limit(), "stores": entries})
        return
    table = new_table("key", "metric", numbers=("series", "size", "complete", "last use"))
    for entry in entries:
        table.add_row(
            entry["key"],
            entry["metric"],
            str(entry["series"]),
            _size(entry["bytes"]),
            f"{int(100 * entry['complete'])} %",  # 100 only if nothing is missing
            entry["last_use"],
        )
    total = sum(entry["bytes"] for entry in entries)
    print_table(table, str(cache_folder()), f"{_size(total)} of {_size(cache_limit())}")


@cache.command(short_help="Check every tile, and remove what is damaged.")
def verify(
    folder: Annotated[
        Path | None, typer.Option(help="One folder of distances instead of the cache.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """You do not trust a disk: check every tile, and remove what is damaged.

    The command or fit that made a tile makes it again. The exit code is 1 if there was damage.
    """
    from softclt.distances import DistanceStore
    from softclt.distances.cache import cached_stores

    stores = cached_stores() if folder is None else [DistanceStore(folder)]
    damaged = {str(store.folder): store.verify() for store in stores}
    found = [f"{place}: {name}" for place, names in damaged.items() for name in names]
    if as_json:
        print_json({"stores": len(stores), "damaged": damaged})
    else:
        for line in found:
            say(f"damaged and removed: {line}")
        say(f"{len(stores)} store(s) checked, {len(found)} damaged file(s)")
    if found:
        raise typer.Exit(1)


@cache.command(short_help="Drop all that is kept, or one entry.")
def clear(
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="One entry of 'softclt cache list'.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """You need the space: drop all that is kept, or one entry."""
    from softclt.distances.cache import cache_folder, clear_cache

    freed = clear_cache(key)
    if as_json:
        print_json({"folder": str(cache_folder()), "freed": freed})
    else:
        say(f"{_size(freed)} freed in {cache_folder()}")


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.3g} MB"
