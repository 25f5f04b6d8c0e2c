"""MyST Markdown for the parser: directives, roles, targets, comments, maths and definition lists.

Directives and roles become tokens that the parser has anyway (``directive_open``, ``fence``,
``maths_block``, ``table_open``, text, …), so that blocks and visible words need no own rules.
Tokens with a MyST name (``:name:``) have it in ``meta["name"]``; targets are ``myst_target``.
"""
