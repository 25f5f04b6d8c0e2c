"""Small EPUB files for tests."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from html import escape
from pathlib import Path

CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">
<rootfiles><rootfile full-path="OEBPS/content.opf"
 media-type="application/oebps-package+xml"/></rootfiles></container>"""
_PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="{version}" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>
<dc:language>en-GB</dc:language><dc:identifier id="id">x</dc:identifier></metadata>
<manifest>{items}</manifest><spine{toc}>{spine}</spine></package>"""
_NAV = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">
<body><nav epub:type="toc"><ol>{entries}</ol></nav></body></html>"""
_NCX = """<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">
<navMap>{entries}</navMap></ncx>"""
Entry = tuple[str, str, list["Entry"]]  # label, href, entries below


def document(body: str, *, title: str = "") -> str:
    """Return an XHTML document."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title>{escape(title)}</title></head><body>{body}</body></html>"
    )


def write_epub(
    path: Path,
    documents: Mapping[str, str | bytes],
    *,
    outline: list[Entry] | None = None,
    ncx: bool = False,
    extra: Mapping[str, str | bytes] | None = None,
    title: str = "A book",
) -> Path:
    """Write an EPUB 3, or an EPUB 2 with an NCX, of documents in reading order."""
    entries = outline or []
    items = "".join(
        f'<item id="d{n}" href="{escape(name)}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(documents)
    )
    files: dict[str, str | bytes] = {
        "META-INF/container.xml": CONTAINER,
        **{f"OEBPS/{name}": content for name, content in documents.items()},
    }
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        files["OEBPS/toc.ncx"] = _NCX.format(entries=_points(entries))
    else:
        items += (
            '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        )
        files["OEBPS/nav.xhtml"] = _NAV.format(entries=_links(entries))
    files["OEBPS/content.opf"] = _PACKAGE.format(
        version="2.0" if ncx else "3.0",
        title=escape(title),
        items=items,
        toc=' toc="ncx"' if ncx else "",
        spine="".join(f'<itemref idref="d{n}"/>' for n in range(len(documents))),
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, content in {**files, **(extra or {})}.items():
            archive.writestr(name, content)
    return path


def _links(entries: list[Entry]) -> str:
    return "".join(
        f'<li><a href="{escape(href)}">{escape(label)}</a>'
        f"{f'<ol>{_links(below)}</ol>' if below else ''}</li>"
        for label, href, below in entries
    )


def _points(entries: list[Entry]) -> str:
    return "".join(
        f"<navPoint><navLabel><text>{escape(label)}</text></navLabel>"
        f'<content src="{escape(href)}"/>{_points(below)}</navPoint>'
        for label, href, below in entries
    )
