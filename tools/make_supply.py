"""Write the bill of materials: sbom.json (CycloneDX) and licences.md in docs/reference/.

python tools/make_supply.py           write them
python tools/make_supply.py --check   exit 1 if one is out of date

In goes the lock of what runs (requirements/run.txt) and what the installed packages say about
themselves. Of a package for another platform than this one, the licence may not be known here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "run.txt"
DOCS = ROOT / "docs" / "reference"

_REQUIREMENT = re.compile(r"([a-z0-9._-]+)(?:\[\S+\])?==([^ ;]+)(?: ; (.*?))? *(?: --hash|$)")
# What packages write instead of an SPDX expression.
_SPDX = {
    "MIT License": "MIT",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    # pypdfium2: PDFium's own parts (FreeType, ICU, libjpeg-turbo, zlib …) are permissive as well.
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
}
# Not installed on this platform, or without a clear expression in the metadata.
_BY_NAME = {"colorama": "BSD-3-Clause", "jinja2": "BSD-3-Clause"}
NOT_KNOWN = "NOASSERTION"
_FREE = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "ISC", "PSF-2.0", "Zlib"} | {
    "CC0-1.0",
    "MPL-2.0",  # its files stay under it; what uses them need not
}


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    version: str
    condition: str  # where it is needed; empty: everywhere
    licence: str

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def is_free(self) -> bool:
        """Whether each part of its licence is one that we may pass on."""
        return set(re.split(r" (?:AND|OR) ", self.licence)) <= _FREE


def components(lock: str) -> Iterator[Component]:
    for line in lock.replace("\\\n", " ").splitlines():
        found = _REQUIREMENT.match(line)
        if found:
            name, version, condition = found[1], found[2], (found[3] or "").strip()
            yield Component(name, version, condition, licence_of(name))


def licence_of(name: str) -> str:
    if name in _BY_NAME:
        return _BY_NAME[name]
    try:
        fields = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return NOT_KNOWN
    classifiers = [c for c in fields.get_all("Classifier") or [] if c.startswith("License")]
    named = [c.rpartition(":: ")[2] for c in classifiers]
    licence = fields.get("License-Expression") or (fields.get("License") or "").partition("\n")[0]
    licence = licence or ", ".join(named) or NOT_KNOWN
    return _SPDX.get(licence, licence)


def sbom(found: list[Component]) -> dict[str, Any]:
    """Without time or serial number: the same lock makes the same bytes."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert version is not None
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "bythebook",
                "name": "bythebook",
                "version": version[1],
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": [_listed(component) for component in found],
    }


def _listed(component: Component) -> dict[str, Any]:
    listed: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
        "licenses": [{"expression": component.licence}],
    }
    if component.condition:
        listed["properties"] = [{"name": "bythebook:condition", "value": component.condition}]
    return listed


def licences(found: list[Component]) -> str:
    lines = [
        "# Licences",
        "",
        "Every package that runs with By the Book, as `requirements/run.txt` locks it. Made by",
        "`python tools/make_supply.py`, like the bill of materials in [sbom.json](sbom.json)",
        "(CycloneDX 1.6); the lock has their hashes. The models are in [NOTICE](../../NOTICE).",
        "",
        "| package | version | licence | only where |",
        "|---|---|---|---|",
    ]
    for each in found:
        condition = f"`{each.condition}`" if each.condition else ""
        lines.append(f"| {each.name} | {each.version} | {each.licence} | {condition} |")
    return "\n".join(lines) + "\n"


def made() -> dict[Path, str]:
    """The pages as they should be."""
    found = list(components(LOCK.read_text("utf-8")))
    bill = json.dumps(sbom(found), indent=1) + "\n"
    return {DOCS / "sbom.json": bill, DOCS / "licences.md": licences(found)}


def main() -> int:
    stale = [path for path, text in made().items() if not _says(path, text)]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} is out of date; run: python tools/make_supply.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(made()[path], "utf-8")
    return 0


def _says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
