"""Write ``sources/slug_table.py`` from the npm package ``github-slugger``.

Usage: ``python tools/make_slug_table.py path/to/node_modules/github-slugger``. Node answers, for
every code point, whether the slugger deletes it; the answers become ranges.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "bythebook" / "sources" / "slug_table.py"

ASK_NODE = """
const {regex} = await import(process.argv[1]);
const ranges = [];
for (let point = 0; point <= 0x10ffff; point++) {
  if (point >= 0xd800 && point <= 0xdfff) continue;
  regex.lastIndex = 0;
  if (String.fromCodePoint(point).replace(regex, '') !== '') continue;
  const last = ranges[ranges.length - 1];
  const joined = last && (last[1] === point - 1 || (point === 0xe000 && last[1] === 0xd7ff));
  if (joined) last[1] = point; else ranges.push([point, point]);
}
console.log(JSON.stringify(ranges));
"""

HEAD = '''"""What github-slugger {version} deletes from a heading, as ranges of code points.

Written by ``tools/make_slug_table.py`` from the package's own regular expression, whose licence
is this (ISC):

{licence}
"""

# Pairs of first and last code point, in hexadecimal.
DELETED = """
{table}
"""
'''


def main(package: Path) -> None:
    asked = subprocess.run(  # noqa: S603
        [
            shutil.which("node") or "node",
            "--input-type=module",
            "-e",
            ASK_NODE,
            str(package / "regex.js"),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    ranges = json.loads(asked.stdout)
    pairs = " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in ranges)
    licence = "\n".join(
        textwrap.fill(line, 98) for line in (package / "LICENSE").read_text().strip().splitlines()
    )
    version = json.loads((package / "package.json").read_text())["version"]
    table = textwrap.fill(pairs, 98, break_on_hyphens=False)
    TARGET.write_text(HEAD.format(version=version, licence=licence, table=table))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
