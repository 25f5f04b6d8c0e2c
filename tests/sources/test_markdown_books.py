"""Books of plain Markdown: kramdown, Liquid and Hugo tags, labelled maths, order and URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.ingestion.read_book import ParsedBook, SiteOptions, read_book
from bythebook.types import UnitKind


def book(folder: Path, pages: dict[str, str], **options: str) -> ParsedBook:
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return read_book(folder, SiteOptions(format="markdown", **options))


def text_of(folder: Path, page: str, **others: str) -> str:
    found = book(folder, {"page.md": page, **others})
    assert found.coverage in (1.0, None)  # None: the scan sees no words in tags alone
    return "\n\n".join(passage.text for passage in found.passages)


def urls(found: ParsedBook) -> list[str]:
    return [page.url for page in found.pages]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("A kite.\n{: .lead #first}", "A kite."),
        ("A **kite**{: .term data-x=\"a}b\"} flies.", "A kite flies."),
        ("1. {: .step} One\n2. {: .step} Two\n{: type=\"1\"}", "1. One\n2. Two"),
        (
            "* {: #a} A\n  1.  {: #b} B <math><mi>x</mi></math>\n      \n      and\n      y.",
            "- A\n  1. B $x$ and y.",
        ),
        ("Text.\n^\n\nMore.", "Text.\n\nMore."),
        ("* TOC\n{:toc}\n\nText.", "Text."),
        ("Seen. {::comment}Not\n\nseen.{:/comment} Seen.", "Seen. Seen."),
        ("The HTML.\n\n*[HTML]: Hyper Text", "The HTML."),
        ("kite\n: flies\n{: #a}\n\nbag\n: holds\n^", "- kite: flies\n- bag: holds"),
        ("kettle\n: boils\n: sings", "- kettle: boils\n- kettle: sings"),
        ("bag\n: ```\n  x\n  ```", "- bag\n```\nx\n```"),
        ('![A blue kite](kite.png "The kite in May."){: #fig}', "The kite in May."),
        ('Text ![not seen](a.png){: .small} here.', "Text here."),
        ("A note.[^1]\n\n[^1]: It is short.", "A note.\n\n1. It is short."),
        ("Value $$x^2$$ here.\n\n$$\ny\n$$", "Value $$x^2$$ here.\n\n$$\ny\n$$"),
        ("Force <math><mi>F</mi></math>\n\n is big.\n{: .a}", "Force $F$ is big."),
        ("Length x size 12{x rSub { size 8{2} } } {} is.\n{: .a}", "Length x is."),
        ("See ```{: .x}``` and `{% raw %}`.", "See {: .x} and {% raw %}."),
        ("```\n{: .x}\n{% if a %}\n^\n```", "```\n{: .x}\n{% if a %}\n^\n```"),
        ("Costs {5} and {x}.", "Costs {5} and {x}."),
        ("/// note | The *wind*\nIt turns.\n///", "Note — The wind\nIt turns."),
        ("//// tab | Py 3.8+\n\nA.\n\n/// tip\n\nB.\n\n///\n\n////", "Py 3.8+\nA.\n\nTip\nB."),
        ("/// details | More\n    open: True\n\nA.\n\n///", "More\nA."),
        ("A line of\n///\nslashes.", "A line of /// slashes."),
        ("```py\n/// note\n///\n```", "```py\n/// note\n///\n```"),
        ("```ts twoslash\nlet a;\n// ---cut---\n// @errors: 1 2\na;\n//^?\n```", "```ts\na;\n```"),
        ("```ts\n// @errors: 1\n// ---cut---\n```", "```ts\n// @errors: 1\n// ---cut---\n```"),
        ("A `kite`[kite] flies.\n\n[kite]: a.md", "A kite kite flies."),
    ],
)  # fmt: skip
def test_kramdown_is_read_as_its_readers_see_it(tmp_path: Path, source: str, shown: str) -> None:
    assert text_of(tmp_path, source, **{"_config.yml": "title: Kites\n"}).strip() == shown


def test_table_with_blank_lines_inside_is_a_table(tmp_path: Path) -> None:
    page = (
        "<table><thead><tr>\n\n        <th>Kite</th>\n        <th>Weight</th>\n\n      </tr>"
        "</thead><tbody>\n\n      <tr>\n        <td>Box</td>\n\n        <td>40 g</td>\n   </tr>\n"
        "</tbody></table>\n"
    )
    assert text_of(tmp_path, page) == "| Kite | Weight |\n|---|---|\n| Box | 40 g |"


def test_ids_of_attribute_lists_are_anchors_of_headings(tmp_path: Path) -> None:
    page = (
        "# T\n\n## Kites {: .x #k}\n\nOne.\n\n## Bags\n{: #b .y}\n\nTwo.\n\n## Tea {#t .z}\n\n3.\n"
        "\n## A `{cup}` { #c }\n\n4.\n"
    )
    found = book(tmp_path, {"a.md": page})
    assert [p.place.url for p in found.passages] == ["/a#k", "/a#b", "/a#t", "/a#c"]
    assert [p.place.section[-1] for p in found.passages] == ["Kites", "Bags", "Tea", "A {cup}"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{% include a %}\nA {{ site.title }} by {{ page.title }}{{ site.x }}", "A Kites by Page"),
        ("{% if x %}\nText.\n{% endif %}", "Text."),
        ("{% comment %}\nNo.\n\n```\n{% endcomment %}\nYes.", "Yes."),
        ("{% raw %}{{ kite }}{% endraw %} flies.", "{{ kite }} flies."),
        ("{% highlight py %}\nx = 1\n{% endhighlight %}", "```py\nx = 1\n```"),
        ("[Link]({% link a.md %}) and [more]({{ site.baseurl }}/b).", "Link and more."),
        ('{% hint style="warning" %}\nHot tea.\n{% endhint %}', "Warning\nHot tea."),
        (
            '{% tabs %}\n{% tab title="Py" %}\n{% hint style="tip" %}\nA.\n{% endhint %}\nB.\n'
            "{% endtab %}\n{% endtabs %}",
            "Py\nTip\nA.\n\nB.",
        ),
        ('{{< figure src="a.png" caption="A kite." >}}', "A kite."),
        ("{{% notice note %}}\nHot.\n{{% /notice %}}", "Note\nHot."),
        ("Go {{< ref \"a.md\" >}}now {{< param\n  x >}}here.", "Go now here."),
        ('A {{< term text="kite" term_id="k" >}}, {{< term term_id="a-b" >}}.', "A kite, a b."),
    ],
)  # fmt: skip
def test_tags_of_templates_are_not_text(tmp_path: Path, source: str, shown: str) -> None:
    config = {"_config.yml": "title: Kites\n"}
    assert text_of(tmp_path, f"---\ntitle: Page\n---\n{source}", **config).strip() == shown


def test_template_values_stay_where_no_generator_fills_them(tmp_path: Path) -> None:
    assert text_of(tmp_path, "Write {{ name }} there.") == "Write {{ name }} there."


def test_an_included_file_is_code_if_it_is_in_the_book_s_folder(tmp_path: Path) -> None:
    lines = (
        '{* ../src/kite.py ln[2:3] hl[1] *}\n\n{{% sample file="bag.yml" %}}\n\n{* ../../no.py *}'
    )
    files = {"src/kite.py": "a = 1\nb = 2\nc = 3\nd = 4\n", "docs/a/bag.yml": "# Bag\nb: 1\n"}
    found = book(tmp_path, {"docs/a/page.md": lines, **files})
    assert [passage.text for passage in found.passages] == [
        "```py\nb = 2\nc = 3\n```\n\n```yml\n# Bag\nb: 1\n```"
    ]
    assert [each.example for each in found.left_out] == ["../../no.py"]


def test_a_page_can_begin_with_an_elixir_map(tmp_path: Path) -> None:
    front = '%{\n  version: "1.0",\n  title: "Kites",\n  excerpt: """\n  All.\n  """\n}\n---\n'
    (page,) = book(tmp_path, {"a.md": f"{front}\nText.\n"}).pages
    assert (page.title, [passage.text for passage in page.passages]) == ("Kites", ["Text."])


LABELLED = """# Growth

$$
y = x
$$ (eq:one)

Prose after it.

$$ z = 1 $$ (eq:two)

1. Item
   $$
   a
   $$ (eq:three)
2. Last

$$

b

$$ where b is small.

## Next

$$

## Kept

The dollars above are a slip.

$$
c
$$
"""


@pytest.mark.parametrize("kind", ["markdown", "jupyter-book"])
def test_labelled_maths_never_flips_the_pairs(tmp_path: Path, kind: str) -> None:
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: a\n")
    (tmp_path / "a.md").write_text(LABELLED)
    found = read_book(tmp_path, SiteOptions(format=kind))
    assert [p.place.section for p in found.passages] == [(), ("Next",), ("Kept",)]
    units = [(unit.kind, p.text[unit.start : unit.end]) for p in found.passages for unit in p.units]
    maths = [text.strip("$ \n") for kind, text in units if kind is UnitKind.MATHS]
    assert maths == ["y = x", "z = 1", "a", "b", "c"]
    prose = [text for kind, text in units if kind is not UnitKind.MATHS]
    assert "Prose after it." in prose
    assert "where b is small." in prose
    assert "The dollars above are a slip." in prose


def test_directives_in_plain_markdown_are_boxes(tmp_path: Path) -> None:
    page = (
        "(label)=\n# T\n\n```{note}\nHot {ref}`tea <t>`.\n```\n\n"
        "```{prf:theorem} Kites\nThey fly.\n```\n\n```{code-cell} python3\nx\n```\n"
    )
    expected = "Note\nHot tea.\n\nTheorem (Kites)\nThey fly.\n\n```python\nx\n```"
    assert text_of(tmp_path, page) == expected


SUMMARY = """# Summary

1.  {: .x} [Start](b.md)
    1.  [Newton\\'s](sub/c.md)

## Part

* [End](a.md)
"""


def test_summary_orders_pages_and_names_chapters(tmp_path: Path) -> None:
    pages = {"SUMMARY.md": SUMMARY, "a.md": "A.", "b.md": "B.", "sub/c.md": "C.", "z.md": "Z."}
    found = book(tmp_path, {**pages, "README.md": "R."})
    assert [page.file for page in found.pages] == ["b.md", "sub/c.md", "a.md", "README.md", "z.md"]
    assert [p.place.module for p in found.passages][:3] == ["Start", "Start", "Part"]
    assert urls(found) == ["/b", "/sub/c", "/a", "/", "/z"]
    (tmp_path / "book.json").write_text("{}")
    assert urls(book(tmp_path, {}))[:4] == ["/b.html", "/sub/c.html", "/a.html", "/"]


@pytest.mark.parametrize("content", [None, b"\xff", b"\0", b"a" * (2 * 1024 * 1024 + 1)])
def test_summary_that_cannot_be_read_is_a_problem(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        (tmp_path / "SUMMARY.md").symlink_to("a.md")
    else:
        (tmp_path / "SUMMARY.md").write_bytes(content)
    found = book(tmp_path, {"a.md": "A."})
    assert [page.file for page in found.pages] == ["a.md"]
    assert [(problem.file, problem.fatal) for problem in found.problems] == [("SUMMARY.md", True)]


def test_jekyll_has_its_own_urls_and_order(tmp_path: Path) -> None:
    config = "url: https://kites.example\nbaseurl: /book\nexclude: [old]\ncollections: [parts]\n"
    pages = {
        "_config.yml": config,
        "index.md": "---\ntitle: Home\nnav_order: 1\n---\nH.",
        "docs/z.md": "---\ntitle: Guide\nnav_order: 2\n---\nG.",
        "docs/a.md": "---\ntitle: Wind\nparent: Guide\nnav_order: 2\n---\nW.",
        "x.md": "---\ntitle: Line\nparent: Guide\nnav_order: 1\npermalink: /line/\n---\nL.",
        "_parts/p.md": "---\ntitle: Part\nnav_order: 9\n---\nP.",
        "old/o.md": "O.",
    }
    found = book(tmp_path, pages)
    site = "https://kites.example/book"
    assert urls(found) == [
        f"{site}/{path}" for path in ("", "docs/z.html", "line/", "docs/a.html", "parts/p.html")
    ]
    assert [p.place.module for p in found.passages][2:4] == ["Guide", "Guide"]
    (tmp_path / "_config.yml").write_text("permalink: pretty\nurl: javascript:alert(1)\n")
    assert urls(book(tmp_path, {}))[1] == "/docs/z/"


def test_hugo_has_its_own_urls_and_order(tmp_path: Path) -> None:
    pages = {
        "hugo.toml": 'baseURL = "https://kites.example/b/"\n',
        "README.md": "Not a page.",
        "content/_index.md": '+++\ntitle = "Home"\n+++\nH.',
        "content/Guide/_index.md": '+++\ntitle = "The guide"\nweight = 1\n+++\nG.',
        "content/Guide/Big Wind.md": '+++\ntitle = "Wind"\nweight = 2\n+++\nW.',
        "content/Guide/line.md": "---\nweight: 1\nslug: rope\n---\nL.",
        "content/tea/index.md": "---\nurl: /cup/\n---\nT.",
    }
    found = book(tmp_path, pages)
    paths = ("", "guide/", "guide/rope/", "guide/big-wind/", "cup/")
    assert urls(found) == [f"https://kites.example/b/{path}" for path in paths]
    assert found.passages[2].place.module == "The guide"
    assert found.pages[0].title == "Home"
    inside = read_book(tmp_path / "content" / "Guide", SiteOptions(format="markdown"))
    assert urls(inside)[1] == "https://kites.example/b/guide/rope/"


def test_other_files_beside_a_site_change_neither_its_pages_nor_their_order(tmp_path: Path) -> None:
    page = "<!doctype html><title>W</title><h1>W</h1><p>Web.</p>"
    hugo = {"hugo.toml": 'baseURL = "/"\n', "static/w.html": page, "content/a.md": "A."}
    book(tmp_path / "hugo", hugo)
    assert [one.file for one in read_book(tmp_path / "hugo").pages] == ["a.md"]
    book(
        tmp_path / "gitbook", {"SUMMARY.md": SUMMARY, "b.md": "B.", "a.md": "A.", "w/w.html": page}
    )
    assert [one.file for one in read_book(tmp_path / "gitbook").pages] == [
        "b.md",
        "a.md",
        "w/w.html",
    ]


def test_pages_of_an_unknown_site_have_the_paths_of_their_files(tmp_path: Path) -> None:
    pages = {"01-a/02-b.md": "B.", "README.md": "R."}
    assert urls(book(tmp_path / "notes", pages)) == ["/", "/01-a/02-b"]
    assert urls(book(tmp_path / "docs", pages)) == ["/docs/", "/docs/a/b"]


@pytest.mark.parametrize(
    "piece",
    (
        "/// a\n", "///\n", "{* ", "{* a\n", "# { ", "```ts twoslash\n// ---cut---\n",
        "{% raw %}", "{% comment %}", "<math>", "<table>", "{::comment}", "{:", "{{", "{%", "```\n",
        "`", "size 1{", "$$\n", "{: '\"", "# {:",
    ),
)  # fmt: skip
def test_unclosed_marks_lose_nothing_and_take_linear_time(tmp_path: Path, piece: str) -> None:
    shown = text_of(tmp_path, "First kite.\n\n" + piece * 20_000 + "\n\nLast kettle.")
    assert "First kite." in shown
    assert "Last kettle." in shown
