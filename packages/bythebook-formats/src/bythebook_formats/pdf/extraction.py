"""Words with boxes, outline and title of a PDF file, read with PDFium."""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from bythebook.language.text import clean
from bythebook_formats.pdf.bullets import with_bullets
from bythebook_formats.pdf.model import Bookmark, PageText, PdfRefused, PdfText, Style, Word

MAX_PAGES = 10_000
MAX_CHARACTERS = 10_000_000
_MAX_BOOKMARKS = 20_000
_MAX_DEPTH = 8
_LONGEST_TITLE = 400  # characters
_HYPHENS = {0x02, 0xAD}  # PDFium writes 2 for a hyphen at the end of a line
_BULLETS = dict.fromkeys((0xF0B7, 0xF0A7, 0xF0D8, 0xF076, 0xF06E, 0xF0A8, 0x25CF), "•")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SOFT_HYPHEN = "\N{SOFT HYPHEN}"
_REASONS = {
    raw.FPDF_ERR_FORMAT: "not a PDF file, or damaged beyond repair",
    raw.FPDF_ERR_PASSWORD: "encrypted: it needs a password; save a copy without one",
    raw.FPDF_ERR_SECURITY: "encrypted in a way that is not supported; save a copy without it",
}
_MONO = re.compile(
    r"mono|courier|consol|typewriter|fixed|menlo|inconsolata|sourcecode|firacode|"
    r"cmtt|cmsltt|cmitt|lmtt|ectt|sltt|nimbusmon|luxim|tt\d+$"
)
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx|cmssbx|ecbx|sfbx|sfssbx|-medi|lmbx")
_FIXED_PITCH = 1  # bit of the font's flags
_FORCE_BOLD = 1 << 18


def extract(content: bytes) -> PdfText:
    """Read the words of all pages; raise PdfRefused if the file cannot be read."""
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        reason = _REASONS.get(error.err_code or 0, "cannot be opened")
        raise PdfRefused(reason) from None
    try:
        return _read(document)
    finally:
        document.close()


def _read(document: Any) -> PdfText:
    count = len(document)
    if count > MAX_PAGES:
        raise PdfRefused(f"more than {MAX_PAGES:,} pages")
    text = PdfText(title=_clean_title(_metadata_title(document)))
    at = 0
    for number in range(1, count + 1):
        try:
            page = document[number - 1]
        except pdfium.PdfiumError:
            text.unreadable.append(number)
            continue
        try:
            words, lost = _page_words(page, at)
            words = with_bullets(page, words)
            if not words and _has_image(page):
                text.scanned.append(number)
            _, bottom, _, top = _turned_box(page, _main_turn(words))
        except pdfium.PdfiumError:
            text.unreadable.append(number)
            continue
        finally:
            page.close()
        at = words[-1].end + 1 if words else at
        text.pages.append(PageText(number, words, bottom, top, lost))
    text.outline = list(_bookmarks(document, count))
    return text


def _metadata_title(document: Any) -> str:
    try:
        return str(document.get_metadata_value("Title"))
    except (pdfium.PdfiumError, UnicodeDecodeError):
        return ""


def _clean_title(title: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in title)
    return " ".join(clean(unicodedata.normalize("NFC", printable)).split())[:_LONGEST_TITLE]


def _bookmarks(document: Any, pages: int) -> Iterator[Bookmark]:
    """Yield the outline in its order; entries without a page are left out."""
    for number, mark in enumerate(document.get_toc(max_depth=_MAX_DEPTH)):
        if number >= _MAX_BOOKMARKS:
            return
        try:
            title, target = _clean_title(mark.get_title()), mark.get_dest()
            page = target.get_index() if target else None
        except (pdfium.PdfiumError, UnicodeDecodeError, ValueError):
            continue
        if title and page is not None and 0 <= page < pages:
            yield Bookmark(mark.level, title, page + 1, _top_of(target))


def _top_of(target: Any) -> float | None:
    try:
        mode, numbers = target.get_view()
    except pdfium.PdfiumError:
        return None
    place = {raw.PDFDEST_VIEW_XYZ: 1, raw.PDFDEST_VIEW_FITH: 0, raw.PDFDEST_VIEW_FITBH: 0}
    index = place.get(mode)
    if index is None or index >= len(numbers) or not numbers[index]:
        return None
    return float(numbers[index])


def _has_image(page: Any) -> bool:
    return next(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=4), None) is not None


def _main_turn(words: list[Word]) -> int:
    sizes = [0, 0, 0, 0]
    for word in words:
        sizes[word.turn] += len(word.text)
    return sizes.index(max(sizes))


def _turned_box(page: Any, turn: int) -> tuple[float, float, float, float]:
    left, bottom, right, top = page.get_bbox()
    xs, ys = zip(_turn(left, bottom, turn), _turn(right, top, turn), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _turn(x: float, y: float, quarters: int) -> tuple[float, float]:
    """Turn a point clockwise about the origin."""
    return ((x, y), (y, -x), (-x, -y), (-y, x))[quarters]


# --- characters -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    """Properties that the characters of one text object share."""

    size: float
    style: Style
    turn: int


def _page_words(page: Any, at: int) -> tuple[list[Word], list[str]]:
    """Return the words of a page, and what of PDFium's own text is in none of them."""
    text_page = page.get_textpage()
    try:
        words = _PageReader(text_page, page.get_bbox(), at).words()
        return words, lost_words(text_page.get_text_bounded(), words)
    finally:
        text_page.close()


def lost_words(text: str, words: list[Word]) -> list[str]:
    """Return the words, or else the letters, of a text that have no counterpart in ``words``."""
    left = Counter(_letters(text)) - Counter(_letters("".join(word.text for word in words)))
    lost: list[str] = []
    for part in text.split() if left else ():
        letters = Counter(_letters(part))
        found = letters & left
        left -= found
        lost += [part] if found == letters else found.elements()
    return lost


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text)))


class _PageReader:
    """Reads the characters of one page, and puts them together to words."""

    def __init__(self, text_page: Any, box: tuple[float, float, float, float], at: int) -> None:
        self._page = text_page.raw
        self._count = text_page.count_chars()
        self._visible = box
        self._at = at
        self._runs: dict[int, _Run] = {}
        self._styles: dict[int, Style] = {}
        self._words: list[Word] = []
        self._word: _WordBuilder | None = None

    def words(self) -> list[Word]:
        if self._at + self._count > MAX_CHARACTERS:
            raise PdfRefused(f"more than {MAX_CHARACTERS:,} characters")
        x, y, box = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF()
        high = 0  # first half of a surrogate pair
        for index in range(self._count):
            code = raw.FPDFText_GetUnicode(self._page, index)
            if 0xD800 <= code < 0xDC00:
                high = code  # PDFium counts characters beyond U+FFFF as two
                continue
            if 0xDC00 <= code < 0xE000 and high:
                code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
            high = 0
            text = _text_of(code)
            if text.isspace():
                self._flush(ends_line=code in (10, 13))
            elif text and raw.FPDFText_GetCharOrigin(self._page, index, x, y):
                raw.FPDFText_GetLooseCharBox(self._page, index, box)
                self._add(text, index, (x.value, y.value), box)
        self._flush()
        return self._words

    def _add(self, text: str, index: int, origin: tuple[float, float], box: Any) -> None:
        left, bottom, right, top = self._visible
        if not (left <= origin[0] <= right and bottom <= origin[1] <= top):
            return
        run = self._run(index)
        base = _turn(*origin, run.turn)[1]
        ends = _turn(box.left, box.bottom, run.turn)[0], _turn(box.right, box.top, run.turn)[0]
        char = _Char(text, min(ends), max(ends), base, run)
        if self._word and not self._word.takes(char):
            self._flush()
        if self._word is None:
            self._word = _WordBuilder(self._at + index)
        self._word.add(char)

    def _flush(self, *, ends_line: bool = False) -> None:
        if self._word is not None and (word := self._word.word()):
            word.ends_line = word.text.endswith(_SOFT_HYPHEN)  # PDFium writes no line end then
            self._words.append(word)
        self._word = None
        if ends_line and self._words:
            self._words[-1].ends_line = True

    def _run(self, index: int) -> _Run:
        handle = raw.FPDFText_GetTextObject(self._page, index)
        address = ctypes.addressof(handle.contents) if handle else -1
        if address not in self._runs:
            self._runs[address] = self._new_run(index, handle)
        return self._runs[address]

    def _new_run(self, index: int, handle: Any) -> _Run:
        matrix = raw.FS_MATRIX()
        size = raw.FPDFText_GetFontSize(self._page, index)
        turn = 0
        if raw.FPDFText_GetMatrix(self._page, index, matrix):
            size *= math.hypot(matrix.c, matrix.d)
            turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
        size = size if math.isfinite(size) and size > 0 else 1.0
        return _Run(min(size, 1000.0), self._style(handle), turn)

    def _style(self, handle: Any) -> Style:
        font = raw.FPDFTextObj_GetFont(handle) if handle else None
        if not font:
            return Style(mono=False, bold=False)
        address = ctypes.addressof(font.contents)
        if address not in self._styles:
            self._styles[address] = style_of(font)
        return self._styles[address]


@dataclass(slots=True)
class _Char:
    text: str
    left: float
    right: float
    base: float
    run: _Run


class _WordBuilder:
    """Characters without white space between them."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._chars: list[_Char] = []
        self._largest: _Char | None = None
        self._texts: list[str] = []
        self._is_spaced = False  # letters are set apart

    def takes(self, char: _Char) -> bool:
        """Return whether a character is next to the last one, and no mark of a footnote."""
        last, largest = self._chars[-1], self._largest
        assert largest is not None
        size = largest.run.size
        widest = 0.6 if self._is_spaced else 0.18  # PDFium leaves out some narrow spaces
        is_ligature = (char.left, char.right) == (last.left, last.right)
        near = is_ligature or -0.6 * size <= char.left - last.right <= widest * size
        level = abs(char.base - largest.base) <= 0.8 * size
        same = char.run.turn == last.run.turn
        end = self._texts[-3:]
        is_note = self._is_raised(char) and len(end) == 3 and "".join(end).isalpha()
        return near and level and same and not is_note

    def add(self, char: _Char) -> None:
        if self._chars and char.left - self._chars[-1].right > 0.08 * char.run.size:
            self._is_spaced = True
        if self._largest is not None and self._is_raised(char):
            self._texts.append(char.text.translate(_SUPERSCRIPTS))
        else:
            self._texts.append(char.text)
        self._chars.append(char)
        if self._largest is None or char.run.size > self._largest.run.size:
            self._largest = char

    def _is_raised(self, char: _Char) -> bool:
        """Return whether a digit is a superscript."""
        largest = self._largest
        if largest is None or not char.text.isdecimal() or char.run.size > 0.85 * largest.run.size:
            return False
        return char.base > largest.base + 0.15 * largest.run.size

    def word(self) -> Word | None:
        text = clean(unicodedata.normalize("NFC", _with_accents("".join(self._texts))))
        if not text:
            return None
        letters = [char for char in self._chars if char.text[0].isalnum()] or self._chars
        assert self._largest is not None
        return Word(
            text=text,
            left=min(char.left for char in self._chars),
            right=max(char.right for char in self._chars),
            base=self._largest.base,
            size=self._largest.run.size,
            style=Style(
                mono=all(char.run.style.mono for char in letters),
                bold=all(char.run.style.bold for char in letters),
            ),
            at=self._at,
            turn=self._chars[0].run.turn,
        )


def _text_of(code: int) -> str:
    """Return the text of a character: ligatures as letters, no control characters."""
    if 0x20 < code < 0x7F:
        return chr(code)
    if code in _HYPHENS:
        return _SOFT_HYPHEN
    if code in (9, 10, 13, 32):
        return " "
    is_valid = 0x20 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    if not is_valid or code in (0xFFFE, 0xFFFF):
        return ""
    char = _BULLETS.get(code) or chr(code)
    if 0xFB00 <= code <= 0xFB06:
        char = unicodedata.normalize("NFKC", char)
    return " " if char.isspace() else char


_ACCENTS = {"¨": "\u0308", "´": "\u0301", "ˆ": "\u0302", "˜": "\u0303", "ˇ": "\u030c"}


def _with_accents(text: str) -> str:
    """Put an accent that is drawn before its letter, as old TeX fonts do, onto the letter."""
    if not any(accent in text for accent in _ACCENTS):
        return text
    chars = list(text)
    for index in range(len(chars) - 1):
        if chars[index] in _ACCENTS and chars[index + 1].isalpha():
            letter = "i" if chars[index + 1] == "ı" else chars[index + 1]
            chars[index], chars[index + 1] = letter, _ACCENTS[chars[index]]
    return "".join(chars)


# --- fonts ----------------------------------------------------------------------------------------


def style_of(font: Any) -> Style:
    name = _name_of(font).rpartition("+")[2].lower()
    flags = raw.FPDFFont_GetFlags(font)
    is_known = flags >= 0
    mono = bool(_MONO.search(name)) or bool(is_known and flags & _FIXED_PITCH)
    # PDFium's weight is no help: it is the width of stems, which is larger in Times than in bold
    # type of other families.
    bold = bool(_BOLD.search(name)) or bool(is_known and flags & _FORCE_BOLD)
    return Style(mono, bold)


def _name_of(font: Any) -> str:
    size = raw.FPDFFont_GetBaseFontName(font, None, 0)
    if not 0 < size <= 1024:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFFont_GetBaseFontName(font, buffer, size)
    return buffer.value.decode("utf-8", "replace")
