"""The page docs/datasets.md: a card per built-in dataset, from its docstrings and attributes.

python -m tools.dataset_page docs/datasets.md
"""

import inspect

from bench.api import Dataset
from bench.plugins.describe import options_of, size
from bench.plugins.registry import Registry
from bench.text_tables import markdown_table
from tools.pages import built_in, write_page

INTRODUCTION = """# Datasets

*Written by `python -m tools.dataset_page docs/datasets.md` from the plug-ins in `datasets/`; edit those.*

Some datasets come with the packages or are generated; others are files that have to be downloaded once:

```console
uqbench data list            # where files are looked for, and which are there
uqbench data fetch yacht     # download and verify; without a name: all up to 1 GB each
uqbench data verify          # compare what is there with its checksums
```

Files are looked for in `--data DIR` (without it, in the folder that `UQBENCH_DATA` names), then in the user's cache
folder (`~/.cache/uqbench`). A download that breaks off goes on where it ended; a file gets its name only when its
checksum is right, and the checksum is compared again whenever a process first loads the file. Without a network the
command says which address to fetch by hand and where to put the file.

Options stand in a suite under `[datasets.NAME]`. One plug-in may appear several times, each under a name of your own
(not that of another dataset):

```toml
[datasets.digits-inverted]
use = "digits-shifted"
shift = "inverted"
```

Files of your own need no suite: `uqbench run quick --dataset 'csv:houses.csv?target=price'`
([your-data.md](your-data.md)).

*Repeats* is how numbered splits are related, which decides on the test of a comparison
([statistics.md](statistics.md)): `independent` are fresh rows for every split, `splits` are overlapping choices from
one table, `seeds` are the same rows for every seed.
"""


def page(registry: Registry) -> str:
    """Return the page: a table of all built-in datasets, then a card for each."""
    found = built_in(registry, "dataset")
    lines = []
    for name, (_, dataset) in found.items():
        rows, row = size(dataset)
        origins = {file.origin for file in dataset.files}
        download = f"{sum(o.size or 0 for o in origins):,} bytes" if origins else "none"
        lines.append([f"[{name}](#{name})", dataset.task, dataset.repeats, rows, row, download])
    cards = (card(name, *about) for name, about in found.items())
    columns = ("name", "task", "repeats", "rows", "one row", "download")
    return "\n".join([INTRODUCTION, *markdown_table(columns, lines), *cards])


def card(name: str, about: str, dataset: Dataset) -> str:
    """Return the card of one dataset."""
    first, _, rest = inspect.cleandoc(about).partition("\n")
    facts = [("source", dataset.source), ("licence", dataset.licence)]
    facts += [("option", option.markdown()) for option in options_of(dataset)]
    facts += [("note", note) for note in dataset.notes]
    for file in dataset.files:
        sums = f"sha256 `{file.sha256}`" if file.sha256 else f"md5 `{file.md5}`"
        facts.append(("file", f"`{file.name}`, {file.size_text}, {sums}, from <{file.origin.url}>"))
    body = "\n".join(f"- {kind}: {text}" for kind, text in facts if text)
    paragraphs = [f"## {name}", first, inspect.getdoc(dataset) or "", rest.strip("\n"), body]
    return "\n" + "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


if __name__ == "__main__":
    write_page(__doc__, lambda: page(Registry()))
