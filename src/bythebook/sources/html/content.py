"""Find the content of a page, and tell it from what the theme adds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from bythebook.language.text import word_set
from bythebook.sources.html.tree import Element, all_text

_NEVER_SHOWN = word_set(
    "head script style template noscript iframe object embed audio video canvas svg nav form input "
    "select textarea dialog"
)
_CHROME_ROLES = word_set(
    "navigation search banner contentinfo toolbar menu menubar dialog doc-backlink doc-noteref "
    "presentation-only tooltip alertdialog"
)
# Class names and ids that themes give to what is not the author's text.
_CHROME_NAMES = word_set(
    "headerlink anchor-link hash-link header-anchor heading-anchor anchorjs-link permalink copybtn "
    "clipboard copy-button skip-link skip-to-content visually-hidden sr-only "
    "screen-reader-text breadcrumb breadcrumbs toc table-of-contents contents-nav "
    "theme-doc-toc-mobile theme-doc-footer theme-doc-breadcrumbs theme-doc-version-badge "
    "theme-edit-this-page theme-last-updated pagination-nav edit-this-page md-content__button "
    "md-source-file md-feedback md-post__meta related sphinxsidebar clearer viewcode-link "
    "view-this-page edit-link page-nav prev-next-area prev-next-footer footer bottom-of-page "
    "quarto-title-tools nav-footer page-navigation footnote-back footnote-backref "
    "reversefootnote footnote-reference footnote-ref fnref navheader navfooter docnav nav-panel "
    "navigation katex-html MathJax_Preview MathJax_CHTML MathJax_SVG linenos "
    "lineno linenodiv gutter rouge-gutter line-numbers hljs-ln-numbers "
    "codeLineNumber fn-backref toctree-wrapper tableofcontents-wrapper"
)
_CHROME_PREFIXES = ("codeLineNumber_", "backToTop", "tocCollapsible", "buttonGroup_")
_CHROME_IDS = word_set("footer toc navbar sidebar menu header-nav search comments disqus_thread")
_EPUB_MARKS = ("noteref", "backlink", "pagebreak")  # values of epub:type
_FOOTNOTE_LINK = re.compile(r"#(?:fn|footnote|user-content-fn|_footnotedef)", re.I)
_MARKS = frozenset(("", "¶", "#", "§", "🔗", "\u200b", "↩", "↩︎", "^", "↑", "\uf0c1"))
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_TITLED = (*_HEADINGS, "summary", "dt")


def classes(element: Element) -> list[str]:
    return element.get("class", "").split()


def find_content(root: Element) -> Element:
    """Return the element with the page's own content: main, article, or the whole body."""
    body = root.find("body") if root.tag == "html" else root
    body = root if body is None else body
    for path in (".//*[@role='main']", ".//main", ".//article"):
        found = body.findall(path)
        if len(found) == 1:
            return _only_article(found[0])
    for name in ("content", "main", "main-content"):
        found = body.findall(f".//div[@id='{name}']")
        if len(found) == 1 and len(body.findall(".//h1")) == len(found[0].findall(".//h1")):
            return found[0]
    return body


def _only_article(main: Element) -> Element:
    """Return the article in the main part, unless the title or another article is outside."""
    articles = main.findall(".//article")
    if len(articles) != 1 or main.tag == "article":
        return main
    has_title = articles[0].find(".//h1") is not None or main.find(".//h1") is None
    return articles[0] if has_title else main


def is_chrome(element: Element) -> bool:
    """Return whether an element is not shown or is not part of the text."""
    tag = element.tag
    if not isinstance(tag, str) or tag in _NEVER_SHOWN:
        return not _is_maths_script(element)
    if tag == "a":
        return _is_mark(element)
    if tag in ("ul", "table") and _leads_to_neighbours(element):
        return True
    if tag == "sup" and len(element) == 1 and not (element.text or "").strip(" ["):
        return element[0].tag == "a" and is_chrome(element[0])
    return _is_edge(element) or (bool(element.attrib) and _is_marked(element))


def _is_maths_script(element: Element) -> bool:
    return element.tag == "script" and element.get("type", "").startswith("math/")


def _is_marked(element: Element) -> bool:
    """Return whether attributes say that an element is hidden or belongs to the theme."""
    if element.get("role") in _CHROME_ROLES or element.get("id") in _CHROME_IDS:
        return True
    if element.get("aria-hidden") == "true" or element.get("type") in _EPUB_MARKS:
        return True
    if "hidden" in element.attrib and not _is_panel(element):
        return True
    names = classes(element)
    if any(name in _CHROME_NAMES or name.startswith(_CHROME_PREFIXES) for name in names):
        # A hidden heading is read to people who cannot see the page; its section has its link.
        return not (element.tag in _HEADINGS and element.get("id"))
    return "contents" in names and element.tag != "div"


def _is_panel(element: Element) -> bool:
    return element.get("role") == "tabpanel"


def _is_mark(link: Element) -> bool:
    """Return whether a link is a permanent link, a footnote's number or a way back from it."""
    if _is_marked(link) or "data-footnote-ref" in link.attrib:
        return True
    if "data-footnote-backref" in link.attrib:
        return True
    target = link.get("href", "")
    if not target.startswith("#"):
        return False
    text = all_text(link).strip()
    if text in _MARKS:
        return link.find(".//img") is None
    return bool(_FOOTNOTE_LINK.match(target)) and text.strip("[]()").isdigit()


def _leads_to_neighbours(element: Element) -> bool:
    """Return whether a list or table only leads to the pages before and after this one."""
    links = list(element.iter("a"))
    if not 1 <= len(links) <= 8:
        return False
    ways = {link.get("accesskey", "") + link.get("rel", "") for link in links}
    return not ways.isdisjoint(("p", "n", "prev", "next", "pprev", "nnext"))


def _is_edge(element: Element) -> bool:
    """Return whether an element is a control, or a header or footer of the page."""
    if element.tag == "button":
        return not any(parent.tag in _TITLED for parent in element.iterancestors())
    if element.tag not in ("header", "footer"):
        return False
    if any(element.find(f".//{name}") is not None for name in _HEADINGS):
        return element.tag == "footer"
    return not any(parent.tag in ("blockquote", "figure") for parent in element.iterancestors())


def shown_links(content: Element) -> Iterator[Element]:
    """Yield the links in the text of a page."""
    walker = etree.iterwalk(content, events=("start",))
    for _, element in walker:
        if element is not content and is_chrome(element):
            walker.skip_subtree()
        elif element.tag == "a":
            yield element
