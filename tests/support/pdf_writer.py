"""Writer of small PDF files: text at positions in standard fonts, an outline, images."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

HELVETICA, BOLD, COURIER, TIMES, MATHS = "F1", "F2", "F3", "F4", "F5"
_FONTS = {
    HELVETICA: "Helvetica",
    BOLD: "Helvetica-Bold",
    COURIER: "Courier",
    TIMES: "Times-Roman",
}
# A font whose "q" is a letter beyond U+FFFF: the italic theta of formulas.
_TO_UNICODE = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfchar <71> <D835DF03> endbfchar endcmap end end"""
WIDTH, HEIGHT = 612, 792
# A standard handler with keys that no empty password opens.
_ENCRYPTED = (
    f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O <{'ab' * 32}> /U <{'cd' * 32}> >> "
    "/ID [<00> <00>]"
)


@dataclass
class Page:
    operators: list[str] = field(default_factory=list)
    has_image: bool = False

    def text(self, x: float, y: float, text: str, size: float = 10, font: str = HELVETICA) -> Page:
        escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        self.operators.append(f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET")
        return self

    def lines(
        self, x: float, y: float, lines: Sequence[str], size: float = 10, font: str = HELVETICA
    ) -> Page:
        """Write lines below each other, the first one at ``y``."""
        for number, line in enumerate(lines):
            if line:
                self.text(x, y - 1.2 * size * number, line, size, font)
        return self

    def turned(self, x: float, y: float, text: str, size: float = 10) -> Page:
        """Write text that runs upwards."""
        self.operators.append(f"BT /F1 {size} Tf 0 1 -1 0 {x} {y} Tm ({text}) Tj ET")
        return self

    def dot(self, x: float, y: float, size: float = 4) -> Page:
        self.operators.append(f"{x} {y} {size} {size} re f")
        return self

    def image(self) -> Page:
        self.has_image = True
        self.operators.append("q 500 0 0 700 50 50 cm /Im1 Do Q")
        return self


@dataclass
class Entry:
    """Entry of the outline."""

    title: str
    page: int  # from 0
    top: float = HEIGHT
    below: list[Entry] = field(default_factory=list)


class PdfWriter:
    def __init__(self, title: str = "", *, compress: bool = False) -> None:
        self.pages: list[Page] = []
        self.outline: list[Entry] = []
        self.encrypted = False
        self._title = title
        self._compress = compress
        self._objects: list[bytes] = []

    def page(self) -> Page:
        self.pages.append(Page())
        return self.pages[-1]

    def bytes(self) -> bytes:
        self._objects = [b""] * 3  # catalog, page tree, information
        fonts = " ".join(f"/{name} {self._add(_font(base))} 0 R" for name, base in _FONTS.items())
        table = self._add(self._stream("", _TO_UNICODE))
        maths = _font("Times-Italic").replace(">>", f"/ToUnicode {table} 0 R >>")
        fonts += f" /{MATHS} {self._add(maths)} 0 R"
        image = self._add(self._stream("/Type /XObject /Subtype /Image /Width 1 /Height 1 "
            "/ColorSpace /DeviceGray /BitsPerComponent 8", b"\0"))  # fmt: skip
        numbers = [self._add_page(page, fonts, image) for page in self.pages]
        kids = " ".join(f"{number} 0 R" for number in numbers)
        outline = self._add_outline(self.outline, numbers)
        self._objects[0] = f"<< /Type /Catalog /Pages 2 0 R {outline} >>".encode()
        self._objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>".encode()
        self._objects[2] = f"<< /Title ({self._title}) >>".encode()
        return assemble(self._objects, _ENCRYPTED if self.encrypted else "")

    def _add(self, content: bytes | str) -> int:
        self._objects.append(content.encode("latin-1") if isinstance(content, str) else content)
        return len(self._objects)

    def _stream(self, entries: str, content: bytes) -> bytes:
        if self._compress:
            content, entries = zlib.compress(content), f"{entries} /Filter /FlateDecode"
        head = f"<< {entries} /Length {len(content)} >>\nstream\n".encode()
        return head + content + b"\nendstream"

    def _add_page(self, page: Page, fonts: str, image: int) -> int:
        content = self._add(self._stream("", "\n".join(page.operators).encode("cp1252")))
        images = f"/XObject << /Im1 {image} 0 R >>" if page.has_image else ""
        return self._add(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
            f"/Contents {content} 0 R /Resources << /Font << {fonts} >> {images} >> >>"
        )

    def _add_outline(self, entries: list[Entry], pages: list[int]) -> str:
        if not entries:
            return ""
        root = self._add("")
        first, last = self._add_entries(entries, root, pages)
        self._objects[root - 1] = (
            f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R >>".encode()
        )
        return f"/Outlines {root} 0 R"

    def _add_entries(self, entries: list[Entry], parent: int, pages: list[int]) -> tuple[int, int]:
        numbers = [self._add("") for _ in entries]
        for index, entry in enumerate(entries):
            links = ""
            if index + 1 < len(entries):
                links += f" /Next {numbers[index + 1]} 0 R"
            if entry.below:
                first, last = self._add_entries(entry.below, numbers[index], pages)
                links += f" /First {first} 0 R /Last {last} 0 R"
            target = f"[{pages[entry.page]} 0 R /XYZ 0 {entry.top} 0]"
            text = f"<< /Title ({entry.title}) /Parent {parent} 0 R /Dest {target}{links} >>"
            self._objects[numbers[index] - 1] = text.encode()
        return numbers[0], numbers[-1]


def _font(base: str) -> str:
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>"


def assemble(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """Return a file of these objects, the first of which is the catalog."""
    content, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 3 0 R {trailer} >>\n"
        f"startxref\n{len(content)}\n%%EOF\n"
    )
    return content + end.encode()
