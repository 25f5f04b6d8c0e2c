"""A small site that uses every rule at once: the pages whose build Docusaurus judges."""

from __future__ import annotations

PAGES: dict[str, str] = {
    "docs/intro.md": "---\nslug: /\n---\n\n# Home *page*\n\nText before it.\n\n## Intro\n\nA.\n",
    "docs/01-ros2/index.md": "---\nid: custom\ntitle: Ros\n---\n\nIndex with an id.\n",
    "docs/01-ros2/01-first.md": "Body without any title.\n\n## One\n\ntext\n",
    "docs/01-ros2/02. second doc.md": "# Second\n\ntext\n",
    "docs/01-ros2/2021-11-date.md": "# Date\n\nkept prefix\n",
    "docs/01-ros2/7.0-version.md": "# Version\n\nkept prefix\n",
    "docs/02-gaz/02-gaz.md": "# Folder page\n\ntext\n",
    "docs/03-sim/sim.md": "# Not an index\n\ntext\n",
    "docs/04-x/01-index.md": "# Prefixed index\n\ntext\n",
    "docs/05-up/slugged.md": "---\nslug: ../up-here\n---\n# Up\n\ntext\n",
    "docs/05-up/relative.md": "---\nslug: deep/er\n---\n# Deeper\n\ntext\n",
    "docs/06-np/07-keep.md": "---\nparse_number_prefixes: false\n---\n# Keep\n\ntext\n",
    "docs/UPPER_Case/Some File.md": "# Case\n\ntext\n",
    "docs/yaml.md": "---\ntitle: No\nid: 010\n---\n\ntext\n",
    "docs/اردو.md": "# تعارف\n\n## پہلا باب: روبوٹ\n\nروبوٹ چلتا ہے۔\n\n### हिन्दी में है\n\nपाठ।\n",
    "docs/headings.mdx": """# Headings & more

## Headings & more

## C++ & Python

## `code` and **bold** _em_ [link](https://x.example)

## Same

### Same

## Same

## same-1

## Explicit {#my-id}

## My id

## Comment id {/* #comment-id */}

## Comment with more {/* #first second */}

## 1.2.3 Version

## Emoji 🚀 here

## Ünïcödé & ß

## a&nbsp;b &amp; c

## Image ![alt text](./missing.png) inside

Setext heading
--------------

Two line
setext
------

# Second h1

##### Level five

###### Level six

## Tags <b>bold</b> inside

## With $x^2$ maths

## Trailing hashes ##

## Under_score and-dash

## A comment {/* only a note */}

## Html comment <!-- #html-id -->

## An {1 + 1} expression

## Vector\\<T> and a \\{brace\\}

## Ends with tag <br/>

:::tip[Title with `code`]

### In a tip

text

:::

<details>
<summary>Sum *mary*</summary>

### In details

text

</details>

> ### In a quote

- ### In a list

<h3>Jsx heading</h3>

<h3 id="given">Jsx heading with id</h3>
""",
    "docs/_part.mdx": "## Part heading\n\nHello {props.name}, from a part.\n\n## Same\n\nMore.\n",
    "docs/mdx.mdx": """---
title: Mdx page
---

import Tabs from '@theme/Tabs';
import TabItem from '@theme/TabItem';
import Part from './_part.mdx';
import {
  useState,
} from 'react';

export const Box = ({children}) => (
  <div style={{color: 'red'}}>

    {children}

  </div>
);

export const answer = 42;

First paragraph, before any heading. {/* a comment */} <!-- html comment -->

{/* block comment */}

<!-- block
comment -->

## Same

<Box>inside box</Box> and <Box>again</Box> with {'a literal'} and {answer}.

<Box>
  **Markdown** in a box
</Box>

<Part name="World" />

<Tabs groupId="os">
  <TabItem value="a" label="Label A">Inline A</TabItem>
  <TabItem value="b" label="Label B">

Block *B*

```py title="tab.py"
print("tab < b > {x}")
```

  </TabItem>
</Tabs>

:::note

Plain note.

:::

:::warning Legacy title

Legacy *body*

:::

::::info[Outer]

outer text

:::danger[Inner]

inner text

:::

::::

:::unknown

Unknown directive body.

:::

- item one
  - nested `code <b>`

    ```sh
    echo "$HOME" | sed 's/a/b/'
    ```
- [ ] todo
- [x] done

1. first
2. second

   second paragraph of second

| a | b |
|---|:-:|
| `x \\| y` | 1 \\< 2 |
| **bold** | |

Inline maths $a < b$ and $c > d$ here.

$$
\\sum_{i=1}^n i = \\frac{n(n+1)}{2}
$$

A claim.[^1] Another.[^note]

[^1]: The first footnote.
[^note]: The second, with `code`.

Escapes: \\{ not expression \\} and \\< 0.5 &lt; 1 &copy; 2024.

Hard break here\\
next line. ~~struck~~ and www.example.org and https://example.org/x_y.

<ul>
  <li>html one</li>
  <li>html two</li>
</ul>

<table>
  <thead><tr><th>h1</th><th>h2</th></tr></thead>
  <tbody>
    <tr><td>c1</td><td>c2</td></tr>
  </tbody>
</table>

> A quote
> over lines
>
> - with list

```mdx-code-block
<Box>Unwrapped</Box>
```

````md
```js
inner fence
```
````

```mermaid
graph TD; A-->B;
```

Line one
<span>inline span</span> after

text {
  'multi-line'
} end

    indented is no code in MDX

<details>
  <summary>Plain summary</summary>
  Compact body
</details>

***

Last paragraph with :colon and 10:30 and a::b.
""",
    "docs/plain.md": """---
mdx:
  format: md
---

# Plain CommonMark

import this is prose

a < b and c > d, {braces} stay, vector&lt;T&gt;.

<details>
<summary>Html *summary*</summary>

Body **bold**

</details>

    indented code

<div>
raw *not markdown*
</div>

## Id here {#plain-id}

## Comment here <!-- #comment-plain -->

Autolink <https://example.org/auto> ok.

:::tip
Tip in plain
:::
""",
}

# A site whose order is written by hand. Its last page is in no sidebar.
SIDEBARS = """
// @ts-check
/** @type {import('@docusaurus/plugin-content-docs').SidebarsConfig} */
const sidebars = {
  book: [
    'zebra',
    {type: 'doc', id: 'parts/second', label: 'Second'},
    {
      type: 'category', label: 'Parts', link: {type: 'doc', id: 'parts/intro'},
      items: ['parts/named', {'Inner': ['parts/first']}],
    },
    {type: 'link', label: 'Elsewhere', href: 'https://x.example'},
    {Shorthand: ['alpha']},
    {type: 'autogenerated', dirName: '03-made'},
  ],
};
export default sidebars;
"""
ORDERED: dict[str, str] = {
    "docs/alpha.md": "# Alpha\n",
    "docs/zebra.md": "---\nslug: /\n---\n# Zebra\n",
    "docs/lonely.md": "# Lonely\n",
    "docs/01-parts/01-first.md": "# First\n",
    "docs/01-parts/02-second.md": "# Second\n",
    "docs/01-parts/03-intro.md": "# Intro\n",
    "docs/01-parts/04-other.md": "---\nid: named\n---\n# Named\n",
    "docs/03-made/b.md": "---\nsidebar_position: 1\n---\n# B\n",
    "docs/03-made/a.md": "---\nsidebar_position: 2\n---\n# A\n",
    "docs/03-made/deep/c.md": "# C\n",
    "sidebars.js": SIDEBARS,
}
IN_ORDER = [
    "zebra.md",
    "01-parts/02-second.md",
    "01-parts/03-intro.md",
    "01-parts/04-other.md",
    "01-parts/01-first.md",
    "alpha.md",
    "03-made/b.md",
    "03-made/a.md",
    "03-made/deep/c.md",
    "lonely.md",
]
