"""Properties of a font that say what its text is: code, a heading."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from pypdfium2 import raw

from bythebook_formats.pdf.model import Style

_MONO = re.compile(
    r"mono|courier|consol|typewriter|fixed|menlo|inconsolata|sourcecode|firacode|"
    r"cmtt|cmsltt|cmitt|lmtt|ectt|sltt|nimbusmon|luxim|tt\d+$"
)
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx|cmssbx|ecbx|sfbx|sfssbx|-medi|lmbx")
_FIXED_PITCH = 1  # bit of the font's flags
_FORCE_BOLD = 1 << 18


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
