"""Find the content of a page, and tell it from what the theme adds."""

from __future__ import annotations

import re

from lxml import etree

from bythebook.language.text import word_set
from bythebook_formats.html.tree import Element, all_text

_NEVER_SHOWN = word_set(
    "head script style template noscript iframe object embed audio video canvas svg nav input "
    "select textarea dialog"
)
_CHROME_ROLES = word_set(
    "navigation search banner contentinfo toolbar menu menubar dialog doc-backlink doc-noteref "
    "tooltip alertdialog"
)
# Class names and ids that themes give to what is not the author's text.
_CHROME_NAMES = word_set(
    "copybtn clipboard copy-button skip-link skip-to-content visually-hidden sr-only "
    "screen-reader-text breadcrumb breadcrumbs toc table-of-contents contents-nav "
    "theme-doc-toc-mobile theme-doc-footer theme-doc-breadcrumbs theme-doc-version-badge "
    "theme-edit-this-page theme-last-updated pagination-nav edit-this-page md-content__button "
    "md-source-file md-feedback md-post__meta sphinxsidebar clearer viewcode-link "
    "view-this-page edit-link page-nav prev-next-area prev-next-footer bottom-of-page "
    "quarto-title-tools nav-footer page-navigation footnote-back footnote-backref "
    "reversefootnote footnote-reference footnote-ref fnref navheader navfooter docnav nav-panel "
    "katex-html MathJax_Preview MathJax_CHTML MathJax_SVG linenos "
    "lineno linenodiv gutter rouge-gutter line-numbers hljs-ln-numbers "
    "codeLineNumber fn-backref line-number line-no boring search-form toctree-wrapper "
    "tableofcontents-wrapper header-section-number section-number chapter-number secno secnum "
    "quarto-title-meta quarto-title-meta-author post-meta entry-meta byline input_prompt "
    "output_prompt jp-InputPrompt jp-OutputPrompt"
)
_PERMALINKS = word_set(
    "headerlink anchor-link hash-link header-anchor heading-anchor anchorjs-link permalink"
)
# Names that authors also give to sections: chrome only without a heading inside.
_AMBIGUOUS = word_set("related footer navigation contents")
_CHROME_PREFIXES = ("codeLineNumber_", "backToTop", "tocCollapsible", "buttonGroup_")
_CHROME_IDS = word_set("footer toc navbar sidebar menu header-nav search comments disqus_thread")
_EPUB_MARKS = ("noteref", "backlink", "pagebreak")  # values of epub:type
_FOOTNOTE_LINK = re.compile(r"#(?:fn|ftn|foot|user-content-fn|_footnotedef)", re.I)
_MARKS = frozenset(("", "¶", "#", "§", "🔗", "\u200b", "↩", "↩︎", "^", "↑", "\uf0c1"))
_BADGE = re.compile(r"badge|shields\.io", re.I)  # in the address of an image
_ARROWS = "<>«»‹›←→⟵⟶"
_TITLE_BLOCK = word_set("author date date-modified")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# Where a button is part of a sentence or a title.
_INLINE_PARENTS = (*_HEADINGS, "summary", "dt", "p", "li", "td", "dd", "em", "strong", "b")
_MOST_NAVIGATION = 60  # words of links to the pages before and after


def classes(element: Element) -> list[str]:
    return element.get("class", "").split()


def body_of(root: Element) -> Element:
    body = root.find("body") if root.tag == "html" else root
    return root if body is None else body


def find_content(root: Element) -> Element:
    """Return the element with the page's own content: main, article, or the whole body."""
    body = body_of(root)
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


def find_chrome(content: Element) -> list[Element]:
    """Return what is not shown or not part of the text; labels of tabs are."""
    walker = etree.iterwalk(content, events=("start",))
    found = []
    for _, element in walker:
        if element is not content and not is_tab(element) and is_chrome(element):
            walker.skip_subtree()
            found.append(element)
    return found


def remove(element: Element) -> None:
    """Remove an element and keep the text after it."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    elif element.tail:
        parent.text = (parent.text or "") + element.tail
    parent.remove(element)


def is_tab(element: Element) -> bool:
    """Return whether an element is the label of a tab."""
    if element.get("role") == "tab":
        return True
    if element.tag != "label":
        return False
    parent = element.getparent()
    is_labels = parent is not None and "tabbed-labels" in classes(parent)
    return is_labels or "sd-tab-label" in classes(element)


def is_chrome(element: Element) -> bool:
    """Return whether an element is not shown or is not part of the text."""
    tag = element.tag
    if not isinstance(tag, str) or tag in _NEVER_SHOWN:
        return not _is_maths_script(element)
    if tag == "a":
        return _is_mark(element)
    if tag in ("ul", "table", "p", "div") and _leads_to_neighbours(element):
        return True
    if tag == "sup" and len(element) == 1 and not (element.text or "").strip(" ["):
        return element[0].tag == "a" and is_chrome(element[0])
    return (bool(element.attrib) and _is_marked(element)) or _is_edge(element)


def _is_maths_script(element: Element) -> bool:
    return element.tag == "script" and element.get("type", "").startswith("math/")


def _is_marked(element: Element) -> bool:
    """Return whether attributes say that an element is hidden or belongs to the theme."""
    if element.get("aria-hidden") == "true" or element.get("type") in _EPUB_MARKS:
        return True
    is_hidden = "hidden" in element.attrib and element.get("role") != "tabpanel"
    if is_hidden or element.get("role") in _CHROME_ROLES:
        return True
    names = classes(element)
    if any(name in _TITLE_BLOCK for name in names):
        return _is_in_title_block(element)
    if any(name in _CHROME_NAMES or name.startswith(_CHROME_PREFIXES) for name in names):
        # A hidden heading is read to people who cannot see the page; its section has its link.
        return not (element.tag in _HEADINGS and element.get("id"))
    if element.get("id") not in _CHROME_IDS and _AMBIGUOUS.isdisjoint(names):
        return False
    return element.tag not in ("section", "article", *_HEADINGS) and not _has_heading(element)


def _is_in_title_block(element: Element) -> bool:
    """Return whether an element stands in the block above a document that pandoc writes."""
    return any(each.get("id") == "title-block-header" for each in element.iterancestors("header"))


def _has_heading(element: Element) -> bool:
    return any(element.find(f".//{name}") is not None for name in _HEADINGS)


def _is_mark(link: Element) -> bool:
    """Return whether a link is a permanent link, a footnote's number or a way back from it."""
    if not _PERMALINKS.isdisjoint(classes(link)):
        return True
    text, target = all_text(link).strip(), link.get("href", "")
    if text in _MARKS:
        image = link.find(".//img")
        if image is None:
            return target.startswith("#")
        return not text and _BADGE.search(image.get("src", "")) is not None
    if _is_title(link):
        return False
    if "data-footnote-ref" in link.attrib or "data-footnote-backref" in link.attrib:
        return True
    is_number = _FOOTNOTE_LINK.match(target) and text.strip("[]()").isdigit()
    return bool(is_number) or _is_marked(link)


def _is_title(link: Element) -> bool:
    """Return whether a link is a heading's text, as docutils writes it, or a footnote's number."""
    for parent, _ in zip(link.iterancestors(), range(3), strict=False):
        if parent.tag in _HEADINGS or "label" in classes(parent):
            return True
    return False


def _leads_to_neighbours(element: Element) -> bool:
    """Return whether an element only leads to the pages before and after this one."""
    if len(element) > 40:
        return False
    links = list(element.iter("a"))
    if not 1 <= len(links) <= 8:
        return False
    between = "".join([element.text or "", *((each.tail or "") for each in element)]).strip()
    if between and not between.strip(f"{_ARROWS}|·-[] \n\t\xa0") and len(links) == len(element):
        return between[0] in _ARROWS or between[-1] in _ARROWS
    ways = {link.get("accesskey", "") + link.get("rel", "") for link in links}
    if ways.isdisjoint(("p", "n", "prev", "next", "pprev", "nnext")):
        return False
    return len(all_text(element).split()) <= _MOST_NAVIGATION


def _is_edge(element: Element) -> bool:
    """Return whether an element is a control, a search form, or a header or footer of the page."""
    tag = element.tag
    if tag == "button":
        parent = element.getparent()
        return parent is None or parent.tag not in _INLINE_PARENTS
    if tag == "form":
        return any(
            field.get("type") == "search" or field.get("name") == "q"
            for field in element.iter("input")
        )
    if tag == "footer":
        return not any(parent.tag in ("blockquote", "figure") for parent in element.iterancestors())
    if tag == "header" and not _has_heading(element):
        parent = element.getparent()
        return parent is None or parent.tag == "body" or element.find(".//nav") is not None
    return False
