"""Parse HTML and XHTML into element trees, within limits."""

from __future__ import annotations

import re
from html.entities import html5
from typing import cast

from lxml import etree

from bythebook.interfaces.source import UnreadableFile

MAX_BYTES = 16 * 1024 * 1024
_CHARSET = re.compile(rb"charset\s{0,9}=\s{0,9}[\"']?([\w-]{1,40})", re.I)
_XML_ENCODING = re.compile(rb"^<\?xml[^>]{0,200}encoding=[\"']([\w-]{1,40})")
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_XML_OWN = frozenset(("amp", "lt", "gt", "quot", "apos"))
_LATIN = ("iso-8859-1", "iso8859-1", "latin-1", "latin1", "ascii", "us-ascii", "windows-1252")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


Element = etree._Element


def select(element: Element, path: str) -> list[Element]:
    """Return the elements of an XPath expression."""
    return cast("list[Element]", element.xpath(path))


def all_text(element: Element) -> str:
    return "".join(map(str, element.itertext()))


def decode(content: bytes) -> str:
    """Return the text by its byte order mark, its declared encoding, or as UTF-8."""
    if len(content) > MAX_BYTES:
        raise UnreadableFile(f"larger than {MAX_BYTES // 1024} KiB")
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "")
    if not encoding:
        declared = _XML_ENCODING.match(content) or _CHARSET.search(content[:2048])
        encoding = declared[1].decode("ascii") if declared else "utf-8"
    # Pages that declare Latin-1 are in Windows-1252, as browsers read them.
    encoding = "cp1252" if encoding.lower() in _LATIN else encoding
    try:
        text = content.decode(encoding, "replace" if encoding == "cp1252" else "strict")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        name = "UTF-8" if encoding.lower() in ("utf-8", "utf8") else encoding
        raise UnreadableFile(f"not valid {name}", line) from None
    except LookupError:
        raise UnreadableFile(f"in the unknown encoding {encoding!r}") from None
    return text.replace("\0", "")  # minifiers leave some


def parse_html(content: bytes) -> etree._Element:
    """Parse a page of a site; raise UnreadableFile if it is no HTML or too deeply nested."""
    # `recover`: browsers show broken pages too. The text is already decoded.
    parser = etree.HTMLParser(
        recover=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
        huge_tree=True,
    )
    return _root(decode(content), parser)


def parse_xml(content: bytes) -> etree._Element:
    """Parse XML or XHTML without namespaces. Entities are never expanded from a DTD."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    text = _ENTITY.sub(_replace_entity, decode(content))
    root = _root(_without_declaration(text), parser)
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = etree.QName(element).localname
            for name in [name for name in element.attrib if str(name).startswith("{")]:
                element.attrib[etree.QName(str(name)).localname] = element.attrib[name]
    return root


def _root(text: str, parser: etree.HTMLParser | etree.XMLParser) -> etree._Element:
    if not text.strip():
        raise UnreadableFile("empty")
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableFile(_reason(str(error)), error.lineno) from None
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableFile(_reason(str(error))) from None
    for entry in parser.error_log:
        if entry.type_name == "ERR_RESOURCE_LIMIT":
            raise UnreadableFile(_reason(entry.message), entry.line)
    if root is None:
        raise UnreadableFile("not HTML")
    return root


def _reason(message: str) -> str:
    if "Excessive depth" in message or "depth" in message:
        return "nested too deeply"
    return f"not well-formed: {message.partition(', line')[0][:200]}"


def _replace_entity(found: re.Match[str]) -> str:
    """Return the character of a named HTML entity, which XML does not know."""
    name = found[1]
    return found[0] if name in _XML_OWN else html5.get(f"{name};", found[0])


def _without_declaration(text: str) -> str:
    """Remove the XML declaration: the text is already decoded."""
    text = text.lstrip("\ufeff")
    return text.partition("?>")[2] if text.startswith("<?xml") else text
