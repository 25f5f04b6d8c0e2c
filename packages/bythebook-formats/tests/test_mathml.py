"""MathML of HTML and EPUB: structure as text like TeX, and which alternatives are used."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.mathml import tex_in
from bythebook_formats.html.maths import maths_of
from bythebook_formats.html.tree import parse_html, parse_xml

X, N, TWO = "<mi>x</mi>", "<mi>n</mi>", "<mn>2</mn>"
_SPACED = "<mn>12 776</mn>"


def _source(inner: str, attributes: str = "") -> str:
    markup = f"<math {attributes}>{inner}</math>"
    page = f"<html><body>{markup}</body></html>".encode()
    sources = {tex_in(markup)}
    for tree in (parse_html(page), parse_xml(page)):
        found = maths_of(tree.findall(".//math")[0])
        assert found is not None
        sources.add(found[0])
    (source,) = sources
    return source


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (f"<mfrac>{_SPACED}<mn>1000</mn></mfrac>", r"\frac{12 776}{1000}"),
        (f"<msqrt>{N}</msqrt>", r"\sqrt{n}"),
        (f"<msqrt>{N}<mo>+</mo>{TWO}</msqrt>", r"\sqrt{n + 2}"),
        (f"<mroot>{N}<mn>3</mn></mroot>", r"\sqrt[3]{n}"),
        (f"<msup>{N}{TWO}</msup>", "n^2"),
        (f"<msub>{X}<mi>i</mi></msub>", "x_i"),
        (f"<msubsup>{X}<mi>i</mi><mn>10</mn></msubsup>", "x_i^{10}"),
        (f"<msup><mrow>{X}<mo>+</mo>{N}</mrow>{TWO}</msup>", "{x + n}^2"),
        (f"<msup><mi>f</mi><mo>′</mo></msup><mo>(</mo>{X}<mo>)</mo>", "f′(x)"),
        (
            "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
            "</munderover><msub><mi>a</mi><mi>i</mi></msub>",
            "∑_{i = 1}^n a_i",
        ),
        (f"<munder><mi>lim</mi><mrow>{N}<mo>→</mo><mi>∞</mi></mrow></munder>", "lim_{n → ∞}"),
        (f'<mover accent="true">{X}<mo>¯</mo></mover>', r"\bar{x}"),
        (
            "<mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr>"
            "<mtr><mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd></mtr></mtable><mo>)</mo>",
            r"(\begin{matrix} 1 & 0 \\ 0 & 1 \end{matrix})",
        ),
        (
            f"<mtable><mtr><mtd>{X}</mtd><mtd><mo>=</mo></mtd><mtd>{TWO}</mtd></mtr>"
            f"<mtr><mtd>{N}</mtd><mtd><mo>=</mo></mtd><mtd><mn>3</mn></mtd></mtr></mtable>",
            r"x = 2 \\ n = 3",
        ),
        (f"<mfenced>{X}{N}</mfenced>", "(x, n)"),
        (f'<mfenced open="[" close="]">{X}</mfenced>', "[x]"),
        (f"<mo>-</mo>{X}<mo>+</mo>{TWO}<mi>y</mi>", "-x + 2y"),
        (f"{X}<mo>=</mo><mo>-</mo>{N}", "x = -n"),
        (f"<mi>f</mi><mo>&#x2061;</mo><mo>(</mo>{X}<mo>,</mo>{N}<mo>)</mo>", "f(x, n)"),
        (f"{TWO}<mo>&#x2062;</mo>{X}<mo>!</mo>", "2x!"),
        (f"<mi>sin</mi>{X}<mtext> if </mtext>{N}", "sin x if n"),
        (f"{X}<mphantom>{N}</mphantom>", "x"),
        (
            "<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn>"
            "</mmultiscripts>",
            "^{14}C_6",
        ),
        (
            f'<mo>(</mo><mfrac linethickness="0">{N}<mi>k</mi></mfrac><mo>)</mo>',
            r"({n \atop k})",
        ),
        (f"<mstyle><mrow><mpadded>{X}</mpadded></mrow></mstyle><unknown>{N}</unknown>", "x n"),
    ],
)
def test_structure_is_kept(inner: str, expected: str) -> None:
    assert _source(inner) == expected


@pytest.mark.parametrize(
    ("inner", "attributes", "expected"),
    [
        (f"<msup>{N}{TWO}</msup>", 'alttext="Alternative text not available"', "n^2"),
        (f"<msup>{N}{TWO}</msup>", 'alttext="image"', "n^2"),
        (f"<msup>{N}{TWO}</msup>", 'alttext="formula_12.png"', "n^2"),
        (f"<msup>{N}{TWO}</msup>", 'alttext="n squared"', "n^2"),
        (f"<msup>{N}{TWO}</msup>", 'alttext=""', "n^2"),
        (X, r'alttext="\lVert x\rVert"', r"\lVert x\rVert"),
        ("", 'alttext="the area of the sail"', "the area of the sail"),
        ("", 'alttext="Alternative text not available"', ""),
        (
            f"<semantics><mfrac>{X}{N}</mfrac>"
            '<annotation encoding="StarMath 5.0"> size 12{x over n} {}</annotation></semantics>',
            "",
            r"\frac{x}{n}",
        ),
        (
            f"<semantics><mfrac>{X}{N}</mfrac>"
            '<annotation encoding="application/x-tex"> size 12{ {x} over {n} } {}</annotation>'
            "</semantics>",
            "",
            r"\frac{x}{n}",
        ),
        (
            f"<semantics><mrow>{X}</mrow><annotation-xml><mi>y</mi></annotation-xml>"
            '<annotation encoding="text/plain">no</annotation>'
            '<annotation encoding="LaTeX">\\mathbf{x}</annotation></semantics>',
            "",
            r"\mathbf{x}",
        ),
    ],
)
def test_only_tex_is_used_in_place_of_the_elements(
    inner: str, attributes: str, expected: str
) -> None:
    assert _source(inner, attributes) == expected


_TAGS = "mrow mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mfenced"
_TREES = st.recursive(
    st.integers(0, 99).map(lambda number: f"<mi>a{number}</mi>"),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>",
        st.sampled_from(_TAGS.split()),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=12,
)


@given(_TREES)
def test_no_symbol_is_lost(inner: str) -> None:
    assert sorted(re.findall(r"a\d+", _source(inner))) == sorted(re.findall(r"a\d+", inner))


def test_hostile_formulas_are_read_in_reasonable_time() -> None:
    assert "x" in _source("<mrow>" * 200 + X + "</mrow>" * 200)
    for text in ("1 " * 5000 + "abc", "a_" * 5000, "." * 9000):
        _source(X, f'alttext="{text}"')
