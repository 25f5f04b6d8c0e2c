"""Built HTML: content, structure, links and order of a static site."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.ingestion.read_book import ParsedBook, SiteOptions, read_book
from bythebook.interfaces.blocks import (
    Block,
    Box,
    Code,
    Document,
    Heading,
    Listing,
    Maths,
    Paragraph,
    Quote,
    Table,
)
from bythebook.interfaces.source import UnreadableFile
from bythebook.sources.documents import plain_text
from bythebook_formats.html.content import body_of, find_content
from bythebook_formats.html.source import PageContent
from bythebook_formats.html.tree import parse_html, parse_xml


def _blocks(body: str, language: str = "") -> tuple[Block, ...]:
    page = f"<html><body><main>{body}</main></body></html>"
    document = _document(page, language)
    assert document.words == document.words
    return document.blocks


def _text(body: str) -> str:
    return plain_text(_blocks(body))


def _document(page: str, language: str = "") -> Document:
    root = parse_html(page.encode())
    return PageContent.of(body_of(root), find_content(root)).document(language)


def _site(folder: Path, pages: dict[str, str | bytes], **options: str) -> ParsedBook:
    for name, page in pages.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page if isinstance(page, bytes) else page.encode())
    return read_book(folder, SiteOptions(**options))  # type: ignore[arg-type]


def _page(title: str, body: str = "<p>Text.</p>", head: str = "", before: str = "") -> str:
    return (
        f'<html lang="en"><head><title>{title} | Site</title>{head}</head>'
        f"<body>{before}<main><h1>{title}</h1>{body}</main></body></html>"
    )


def _next(name: str) -> str:
    return f'<link rel="next" href="{name}">'


# --- blocks ---------------------------------------------------------------------------------------


def test_paragraphs_lists_and_quotations_keep_their_structure() -> None:
    blocks = _blocks(
        "<p>One\n two<br>three</p><ul><li>a<ol start=3><li>b</li></ol></li></ul>"
        "<blockquote><p>q</p></blockquote>loose <b>text</b>"
    )
    first, items, quote, loose = blocks
    assert isinstance(first, Paragraph)
    assert first.text == "One two\nthree"
    assert isinstance(items, Listing)
    inner = items.items[0][1]
    assert isinstance(inner, Listing)
    assert (inner.ordered, inner.start) == (True, 3)
    assert isinstance(quote, Quote)
    assert isinstance(loose, Paragraph)
    assert loose.text == "loose text"


@pytest.mark.parametrize(
    ("body", "anchor"),
    [
        ('<h2 id="own">T</h2>', "own"),
        ('<section id="sec"><h2>T</h2><p>x</p></section>', "sec"),
        ('<section id="sec"><header><h2>T</h2></header></section>', "sec"),
        ('<div id="box"><h2 id="a">A</h2><h2>T</h2></div>', None),
        ('<h2><a name="old"></a>T</h2>', "old"),
        ('<span id="mark"></span><h2>T</h2>', "mark"),
        ("<h2>T</h2>", None),
        ('<h2 id="t"><a class="toc-backref" href="#id1" role="doc-backlink">T</a></h2>', "t"),
        (
            '<div id="sec"><div class="titlepage"><div><div><h2>T</h2></div></div></div></div>',
            "sec",
        ),
        ('<section id="search"><h2>T</h2></section>', "search"),
        ('<h2 id="toc">T</h2>', "toc"),
        ('<div class="related"><h2 id="r">T</h2></div>', "r"),
    ],
)
def test_a_heading_has_the_id_that_leads_to_it(body: str, anchor: str | None) -> None:
    headings = [block for block in _blocks(body) if isinstance(block, Heading)]
    assert headings[-1].anchor == anchor
    assert headings[-1].text == "T"


@pytest.mark.parametrize(
    "mark",
    [
        '<a class="headerlink" href="#t" title="Link to this heading">¶</a>',
        '<a href="#t" class="hash-link" aria-label="Direct link">\u200b</a>',
        '<a href="#t">#</a>',
        '<a class="anchor-link" href="#t">x</a>',
    ],
)
def test_permanent_links_are_no_text(mark: str) -> None:
    assert _text(f'<h2 id="t">Title{mark}</h2>') == "Title"


@pytest.mark.parametrize(
    ("html", "language", "title"),
    [
        ('<pre><code class="language-python">a = 1\n\n  b\n</code></pre>', "python", ""),
        (
            '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>'
            '<span class="linenos">1</span><span class="n">a</span> = 1\n'
            '<span class="linenos">2</span>\n<span class="linenos">3</span>  b\n</pre></div></div>',
            "python",
            "",
        ),
        (
            '<div class="highlight"><table class="highlighttable"><tr><th colspan="2" '
            'class="filename"><span class="filename">f.py</span></th></tr><tr><td class="linenos">'
            "<pre>1\n2\n3</pre></td><td class='code'><div><pre><code>a = 1\n\n  b\n</code></pre>"
            "</div></td></tr></table></div>",
            "",
            "f.py",
        ),
        (
            '<div class="language-py codeBlockContainer_x"><div class="codeBlockTitle_y">f.py</div>'
            '<div class="codeBlockContent_z"><pre class="prism-code language-py"><code>'
            '<div class="token-line">a = 1<br></div><div class="token-line"><br></div>'
            '<div class="token-line">  b<br></div></code></pre>'
            '<button class="clean-btn">Copy</button></div></div>',
            "py",
            "f.py",
        ),
        (
            '<div class="literal-block-wrapper"><div class="code-block-caption">'
            '<span class="caption-text">f.py</span></div><div class="highlight-c"><pre>a = 1\n\n'
            "  b</pre></div></div>",
            "c",
            "f.py",
        ),
        (
            '<div class="sourceCode"><pre class="sourceCode r"><code>a = 1\n\n  b</code></pre>'
            "</div>",
            "r",
            "",
        ),
        ("<pre>\na = 1\n\n  b\n</pre>", "", ""),
    ],
)
def test_code_is_kept_byte_for_byte_without_line_numbers(
    html: str, language: str, title: str
) -> None:
    (code,) = _blocks(html)
    assert isinstance(code, Code)
    assert code.text == "a = 1\n\n  b"
    assert (code.language, code.title) == (language, title)


@pytest.mark.parametrize(
    ("html", "source", "displayed"),
    [
        (r'<p>x <span class="math">\(a^2\)</span> y</p>', "a^2", False),
        (r'<div class="math"><span class="eqno">(1)</span>\[a^2\]</div>', "a^2", True),
        (r'<div class="arithmatex">\[a^2\]</div>', "a^2", True),
        (
            '<span class="katex-display"><span class="katex"><span class="katex-mathml"><math>'
            '<semantics><msup><mi>a</mi><mn>2</mn></msup><annotation encoding="application/x-tex">'
            'a^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">'
            "a2</span></span></span>",
            "a^2",
            True,
        ),
        ('<p>x <script type="math/tex">a^2</script> y</p>', "a^2", False),
        ('<math display="block" alttext="a^2"><mi>a</mi></math>', "a^2", True),
        (r"<p>x \(a^2\) y</p>", "a^2", False),
        ("<p>x <math><mi>a</mi><mo>+</mo><mn>2</mn></math> y</p>", "a + 2", False),
    ],
)
def test_formulas_keep_their_source(html: str, source: str, displayed: bool) -> None:
    (block,) = _blocks(html)
    if displayed:
        assert isinstance(block, Maths)
        assert block.text == source
    else:
        assert isinstance(block, Paragraph)
        assert block.text == f"x ${source}$ y"


def test_a_table_keeps_header_rows_caption_and_wide_cells() -> None:
    caption, table = _blocks(
        "<table><caption>Winds</caption><thead><tr><th>Name</th><th>m/s</th></tr></thead><tbody>"
        "<tr><td><p>Breeze</p></td><td><ul><li>5</li><li>6</li></ul></td></tr>"
        "<tr><td colspan=2>Gale</td></tr></tbody></table>"
    )
    assert isinstance(caption, Paragraph)
    assert caption.text == "Winds"
    assert isinstance(table, Table)
    assert table.header == ("Name", "m/s")
    (tall,) = _blocks(
        "<table><tr><th>a<th>b</tr><tr><td rowspan=2>1<td>2</tr><tr><td>3</tr><tr><td>4<td>5</tr>"
        "</table>"
    )
    assert isinstance(tall, Table)
    assert tall.rows == (("1", "2"), ("1", "3"), ("4", "5"))
    assert table.rows == (("Breeze", "5 6"), ("Gale", ""))


@pytest.mark.parametrize(
    "html",
    [
        '<div class="admonition note"><p class="admonition-title">Note</p><p>Body.</p></div>',
        '<div class="theme-admonition admonition_x"><div class="admonitionHeading_y"><span '
        'class="i"><svg><title>no</title></svg></span>Note</div><div><p>Body.</p></div></div>',
        "<details><summary>Note</summary><p>Body.</p></details>",
        '<aside class="topic"><p class="topic-title">Note</p><p>Body.</p></aside>',
        '<div class="callout callout-tip"><div class="callout-header">Note</div>'
        '<div class="callout-body"><p>Body.</p></div></div>',
        "<dl><dt>Note</dt><dd>Body.</dd></dl>",
        '<div class="note"><h3 class="title">Note</h3><p>Body.</p></div>',
        '<div class="note"><table><tr><td><img alt="[Note]"></td><th>Note</th></tr><tr>'
        "<td>Body.</td></tr></table></div>",
        '<div class="admonitionblock note"><table><tr><td class="icon"><div class="title">Note'
        '</div></td><td class="content"><p>Body.</p></td></tr></table></div>',
    ],
)
def test_admonitions_details_and_definitions_are_boxes(html: str) -> None:
    (box,) = _blocks(html)
    assert isinstance(box, Box)
    assert (box.title, plain_text(box.blocks)) == ("Note", "Body.")


@pytest.mark.parametrize("names", ["theme-admonition theme-admonition-danger", "admonition danger"])
@pytest.mark.parametrize(
    ("title", "language", "expected"),
    [
        ("Keep away", "en-GB", "Danger — Keep away"),
        ("Keep away", "", "Danger — Keep away"),
        ("danger", "en", "danger"),
        ("Gefahr", "de", "Gefahr"),  # a translation of the kind, or a title
    ],
)
def test_a_box_with_a_title_has_its_kind(
    names: str, title: str, language: str, expected: str
) -> None:
    html = f'<div class="{names}"><p class="admonition-title">{title}</p><p>Body.</p></div>'
    (box,) = _blocks(html, language)
    assert isinstance(box, Box)
    assert box.title == expected


@pytest.mark.parametrize(
    "html",
    [
        '<div class="tabbed-set"><input type="radio"><div class="tabbed-labels"><label>A</label>'
        '<label>B</label></div><div class="tabbed-content"><div class="tabbed-block"><p>x</p></div>'
        '<div class="tabbed-block"><p>y</p></div></div></div>',
        '<div class="tabs"><ul role="tablist"><li role="tab">A</li><li role="tab">B</li></ul><div>'
        '<div role="tabpanel"><p>x</p></div><div role="tabpanel" hidden><p>y</p></div></div></div>',
        '<div class="sd-tab-set"><input><label class="sd-tab-label">A</label><div class='
        '"sd-tab-content"><p>x</p></div><input><label class="sd-tab-label">B</label><div class='
        '"sd-tab-content"><p>y</p></div></div>',
    ],
)
def test_each_tab_has_its_label(html: str) -> None:
    boxes = [block for block in _blocks(html) if isinstance(block, Box)]
    assert [(box.title, plain_text(box.blocks)) for box in boxes] == [("A", "x"), ("B", "y")]


def test_images_have_their_description_and_figures_their_caption() -> None:
    text = _text(
        '<figure><img src="a.png" alt="A red kite"><figcaption>In the air.</figcaption></figure>'
    )
    assert text == "A red kite\nIn the air."
    assert _text('<p>a<img alt="b" src="x">c</p>') == "a b c"


@pytest.mark.parametrize(
    "note",
    [
        '<p>Text.<sup><a href="#fn1" class="footnote-ref" role="doc-noteref">1</a></sup></p>'
        '<section role="doc-endnotes"><ol><li id="fn1"><p>Wind.<a href="#r" role="doc-backlink">↩'
        "</a></p></li></ol></section>",
        '<p>Text.<sup class="footnote">[<a href="#_footnotedef_1">1</a>]</sup></p>'
        '<div id="footnotes"><div class="footnote"><a href="#_footnoteref_1">1</a>. Wind.</div>'
        "</div>",
        '<p>Text.<a class="footnote-reference brackets" href="#id2" role="doc-noteref">[1]</a></p>'
        '<aside class="footnote" role="doc-footnote"><span class="label">[<a role="doc-backlink" '
        'href="#id1">1</a>]</span><p>Wind.</p></aside>',
        '<p>Text.<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">1</a></sup></p><div '
        'class="footnote"><hr><ol><li id="fn:1"><p>Wind.<a class="footnote-backref" href="#f">↩</a>'
        "</p></li></ol></div>",
    ],
)
def test_footnotes_are_kept_without_the_links_to_and_from_them(note: str) -> None:
    text = _text(note)
    assert text.startswith("Text.\n")
    assert text.endswith("Wind.")


def test_what_is_not_the_authors_text_is_left_out() -> None:
    page = """<html><body><header>Brand</header><nav>Menu</nav><div role="search">Find</div>
    <main><nav class="breadcrumbs">Home</nav><article><header><h1>Title</h1></header>
    <div class="toc">On this page</div><div class="toctree-wrapper"><p>Other</p></div>
    <p>Own <span class="sr-only">hidden</span>words.</p>
    <script>x()</script><style>y{}</style><noscript>no</noscript>
    <form>Find<input type="search"></form>
    <p hidden>hidden</p><svg><text>svg</text></svg><button>Copy</button>
    <footer>Edit this page</footer></article></main>
    <aside>Aside</aside><footer>Powered by</footer></body></html>"""
    document = _document(page)
    assert plain_text(document.blocks) == "Title\nOwn words."
    assert document.words == ("Title", "Own", "words")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (r"<p>Use <code>\( x \)</code> and <kbd>a</kbd>.</p>", r"Use \( x \) and a."),
        ("<p>Press <button>Save</button> to store.</p>", "Press Save to store."),
        ("<form><p>Which wind?</p><input></form>", "Which wind?"),
        ("<p>10<sup>-3</sup> of the 1<sup>st</sup> m<sup>2</sup></p>", "10^-3 of the 1st m^2"),
        ("<p>soft\u00adhy\u200bphen</p>", "softhyphen"),
        ('<pre>a<span class="boring">hidden</span>b</pre>', "ab"),
        (
            '<p><a accesskey="n" href="b.html">Next</a> <a accesskey="p" href="a.html">Up</a></p>',
            "",
        ),
        ('<p>Text.<a href="#ftn.id1">[7]</a></p>', "Text."),
        ("<header>An epigraph.</header>", "An epigraph."),
    ],
)
def test_inline_text_is_that_of_the_author(html: str, text: str) -> None:
    assert _text(html) == text


# --- sites ----------------------------------------------------------------------------------------


def test_pages_follow_the_next_links_and_parts_come_from_the_menu(tmp_path: Path) -> None:
    menu = (
        '<nav><p class="caption">Flying</p><ul><li><a href="z.html">Zeta</a></li>'
        '<li><a href="a.html">Alpha</a></li></ul><ul><li>Other<ul><li><a href="m.html">M</a></li>'
        "</ul></li></ul></nav>"
    )
    book = _site(
        tmp_path,
        {
            "index.html": _page("Book", head='<link rel="next" href="z.html">', before=menu),
            "a.html": _page("Alpha", before=menu),
            "m.html": _page("M", before=menu),
            "z.html": _page("Zeta", head='<link rel="next" href="a.html">', before=menu),
        },
    )
    assert [page.title for page in book.pages] == ["Book", "Zeta", "Alpha", "M"]
    modules = {page.title: page.passages[0].place.module for page in book.pages}
    assert modules == {"Book": "Book", "Zeta": "Flying", "Alpha": "Flying", "M": "Other"}


def test_urls_come_from_the_page_or_from_its_path(tmp_path: Path) -> None:
    canonical = '<link rel="canonical" href="https://kites.example/book/guide/">'
    pages: dict[str, str | bytes] = {
        "index.html": _page("Home"),
        "guide/index.html": _page("Guide", head=canonical),
        "guide/a b.html": _page(
            "A b", head='<link rel="canonical" href="https://other.example/x">'
        ),
    }
    book = _site(tmp_path / "one", pages)
    urls = {page.title: page.url for page in book.pages}
    assert urls == {
        "Home": "/",
        "Guide": "https://kites.example/book/guide/",
        "A b": "/guide/a%20b.html",
    }
    book = _site(tmp_path / "two", pages, url="https://x.example", base_url="/docs/")
    assert {page.url for page in book.pages} == {
        "https://x.example/docs/",
        "https://x.example/docs/guide/",
        "https://x.example/docs/guide/a%20b.html",
    }


def test_generated_pages_redirects_and_copies_are_left_out(tmp_path: Path) -> None:
    refresh = '<meta http-equiv="Refresh" content="0; url=a.html">'
    book = _site(
        tmp_path,
        {
            "index.html": _page("Home", head=_next("old.html")),
            "search.html": _page("Search"),
            "404.html": _page("Not found"),
            "genindex/index.html": _page("Index"),
            "old.html": _page("Old", head=refresh + _next("a.html")),
            "_static/x.html": _page("Static"),
            "empty.html": "<html><body><main></main></body></html>",
            "a.html": _page("A", "<p>One two three four.</p>", head=_next("__future__.html")),
            "__future__.html": _page("Future", head=_next("part/search.html")),
            "part/search.html": _page("How to search", head=_next("../other.html")),
            "other.html": _page("A", "<p>One two three four.</p>"),
            "ur/a.html": _page("A", "<p>One two three four.</p>"),
        },
    )
    assert [page.file for page in book.pages] == [
        "index.html",
        "a.html",
        "__future__.html",
        "part/search.html",
        "other.html",
    ]
    assert {problem.file: problem.reason for problem in book.problems} == {
        **dict.fromkeys(
            ("404.html", "search.html", "genindex/index.html"),
            "made by the generator from other pages: left out",
        ),
        "ur/a.html": "has the same text as a.html: left out",
        "other.html": "has the same text as a.html: is it an old page?",
    }


def test_what_every_page_repeats_at_its_edges_is_left_out(tmp_path: Path) -> None:
    def page(number: int) -> str:
        own = f"<h1>Page {number}</h1><p>Own {number}.</p><h2>Exercises</h2><p>Ask {number}.</p>"
        return (
            f"<body><p>Buy the book</p><div>{own}</div><p>See you.</p><div>Site 2020</div></body>"
        )

    book = _site(tmp_path, {f"{number}.html": page(number) for number in range(6)})
    assert book.coverage == 1.0
    texts = [passage.text for passage in book.pages[0].passages]
    assert texts == ["Own 0.", "Ask 0."]
    assert book.pages[0].passages[1].place.section == ("Exercises",)


def test_a_section_that_every_page_repeats_is_the_authors(tmp_path: Path) -> None:
    def page(number: int) -> str:
        safety = "<h2 id='s'>Safety</h2><p>Wear goggles.</p>"
        return f"<body><h1>Page {number}</h1><p>Own {number}.</p>{safety}</body>"

    book = _site(tmp_path, {f"{number}.html": page(number) for number in range(6)})
    assert [passage.text for passage in book.pages[5].passages] == ["Own 5.", "Wear goggles."]


def test_chapters_are_sorted_by_their_numbers(tmp_path: Path) -> None:
    names = [f"chapter{number}.html" for number in (1, 2, 10, 11)]
    book = _site(tmp_path, {name: _page(name, f"<p>Text of {name}.</p>") for name in names})
    assert [page.file for page in book.pages] == names


def test_encodings_are_recognised_and_errors_named(tmp_path: Path) -> None:
    latin = (
        '<html><head><meta charset="iso-8859-1"></head><body><h1>“Köln”</h1><p>x</p></body></html>'
    )
    book = _site(
        tmp_path,
        {
            "latin.html": latin.encode("cp1252"),
            "wide.html": _page("Wide").encode("utf-16"),
            "unknown.html": b'<html><head><meta charset="klingon"></head><body>x</body></html>',
            "broken.html": b"<p>\xff\xfe\xff</p>",
            "nul.html": _page("Nul", "<p>a\0b</p>"),
        },
    )
    assert {page.title for page in book.pages} == {"“Köln”", "Wide", "Nul"}
    reasons = {problem.file: problem.reason for problem in book.problems}
    assert reasons == {
        "unknown.html": "in the unknown encoding 'klingon'",
        "broken.html": "not valid UTF-8",
    }


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000 + "deep",
        "<ul><li>" * 5_000,
        "<a><b><i>" * 3_000,
        "<table><tr><td>" * 2_000,
    ],
)
def test_deep_nesting_is_a_problem_of_that_page(page: str) -> None:
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        parse_html(page.encode())


def test_entities_of_a_document_are_never_expanded() -> None:
    bomb = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    with pytest.raises(UnreadableFile, match="entity"):
        parse_xml(f'<!DOCTYPE x [<!ENTITY a0 "boom">{bomb}]><x>&a11;</x>'.encode())
    page = '<!DOCTYPE x [<!ENTITY a "boom"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    root = parse_xml(f"{page}<x>&a; &f; &nbsp;&eacute;</x>".encode())
    text = "".join(str(part) for part in root.itertext("x"))
    assert "boom" not in text
    assert "root:" not in text
    assert "é" in text + "".join(part.tail or "" for part in root)


# --- what is no text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        '<div class="prompt input_prompt">In&nbsp;[8]:</div>',
        '<div class="jp-OutputPrompt jp-OutputArea-prompt">Out[8]:</div>',
        '<p><a href="https://a.example/x"><img src="/colab-badge.svg" alt="Open in Colab"></a></p>',
        '<p>&lt; <a href="a.html">Wind</a> | <a href="i.html">Contents</a> | '
        '<a href="b.html">Lift</a> &gt;</p>',
        '<p>| <a href="i.html">Contents</a> | <a href="b.html">Lift</a> &gt;</p>',
        '<div class="quarto-title-meta"><div>Published</div><p class="date">May 1</p></div>',
        '<header id="title-block-header"><p class="author">A. Kite</p><p class="date">May</p>'
        "</header>",
        '<p><img src="_images/kite.png" alt="_images/kite.png"></p>',
        '<p><img src="../_images/kite.png" alt="kite.PNG"></p>',
    ],
)
def test_marks_of_notebooks_themes_and_files_are_no_text(html: str) -> None:
    assert _text(f"<h1>Kites</h1>{html}<p>Text.</p>") == "Kites\nText."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p>See <a href="a.html">Wind</a> | <a href="b.html">Lift</a>.</p>', "See Wind | Lift."),
        ('<p class="author">A. Kite</p>', "A. Kite"),
        ('<p><img src="k.png" alt="A kite, seen from below"></p>', "A kite, seen from below"),
        ('<p><a href="k.png"><img src="k.png" alt="A kite"></a></p>', "A kite"),
        ("<pre>In [1]: help(len)</pre>", "In [1]: help(len)"),
    ],
)
def test_text_that_looks_like_a_mark_is_kept(html: str, text: str) -> None:
    assert _text(html) == text


@pytest.mark.parametrize("name", ["header-section-number", "section-number", "secno", "secnum"])
def test_section_numbers_are_no_part_of_a_heading(name: str) -> None:
    (heading,) = _blocks(f'<h2 id="a"><span class="{name}">2.1</span> Lift</h2>')
    assert isinstance(heading, Heading)
    assert (heading.text, heading.anchor) == ("Lift", "a")


def test_a_page_to_be_printed_is_left_out_in_any_folder(tmp_path: Path) -> None:
    bodies = {name: f"<p>{' '.join(name + str(n) for n in range(40))}</p>" for name in "abc"}
    pages = {f"dev/{name}.html": _page(name.upper(), body) for name, body in bodies.items()}
    whole = _page("All", "".join(bodies.values()))
    about = _page("The print function", "<p>It writes a line.</p>")
    book = _site(
        tmp_path,
        {"index.html": _page("Home"), **pages, "dev/print.html": whole, "py/print.html": about},
    )
    assert [page.file for page in book.pages if "print" in page.file] == ["py/print.html"]
    (problem,) = [problem for problem in book.problems if problem.file == "dev/print.html"]
    assert problem.reason == "repeats the other pages of its folder: left out"


def test_headings_of_a_page_that_leaves_out_levels_are_sections(tmp_path: Path) -> None:
    body = "<h3 id=a>A</h3><p>a</p><h4 id=b>B</h4><p>b</p><h5 id=c>C</h5><p>c</p>"
    book = _site(tmp_path, {"index.html": _page("Kites", body)})
    assert [passage.place.section for passage in book.passages] == [
        ("A",), ("A", "B"), ("A", "B", "C"),
    ]  # fmt: skip


def test_a_menu_that_leads_to_pdf_files_orders_the_pages_beside_them(tmp_path: Path) -> None:
    links = "".join(f'<a href="{name}.pdf">{name}</a>' for name in ("zeal", "kite", "air"))
    menu = f'<nav>{links}<a href="book.pdf">All</a></nav>'
    pages = {f"{name}.html": _page(name, before=menu) for name in ("air", "kite", "zeal")}
    book = _site(tmp_path, {"index.html": _page("Home", before=menu), **pages})
    assert [page.title for page in book.pages] == ["Home", "zeal", "kite", "air"]
