"""Draw the gallery: run each block of `docs/gallery.md` and write the picture above it.

The pictures are SVG files that follow the reader's choice of light or dark.
"""

import os
import re
import sys
from pathlib import Path

from softclt.files import whole_file
from softclt.reports.figures import style
from softclt.reports.pictures import inline_svg

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
ITEM = re.compile(r"\(gallery/([\w-]+)\.svg\)\n+```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GREY = re.compile(r"#([0-7][0-9a-f])\1\1\b")  # dark ones, which a dark page would swallow
TAG = re.compile(r"<[^>]*>")
DIGITS = re.compile(r"(\d+\.\d\d)\d+")  # hundredths of a point are enough
LOOK = """<style>
svg { background: #ffffff; color: #1a1a1a; --for: #0072b2; --against: #d55e00;
      font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { background: #15181e; color: #e4e6ea; --for: #56b4e9; --against: #e69f00; }
}
</style>"""


def items():
    """Name and code of each picture of the page."""
    return dict(ITEM.findall(PAGE.read_text(encoding="utf-8")))


def drawn(code):
    """The text of the SVG that a block of code makes."""
    names = {}
    with style():
        exec(compile(code, "<gallery>", "exec"), names)
    text = inline_svg(names["figure"], "g", themed=True)
    text = GREY.sub("currentColor", text)
    text = TAG.sub(lambda tag: DIGITS.sub(r"\1", tag[0]), text)  # words stay as they are
    return re.sub(r"(<svg[^>]*>)", lambda tag: f"{tag[1]}{LOOK}", text, count=1) + "\n"


def main(wanted):
    """Draw the pictures with these names; all if there are none."""
    os.chdir(ROOT)
    for name, code in items().items():
        if wanted and name not in wanted:
            continue
        path = PAGE.parent / "gallery" / f"{name}.svg"
        with whole_file(path) as temporary:
            temporary.write_text(drawn(code), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
