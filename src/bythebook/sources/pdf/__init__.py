"""PDF files with a text layer: words with boxes, layout, headings, chapters.

``source`` is the format. It runs ``worker`` in a process of its own, which reads the bytes with
``extraction`` (PDFium) and makes chapters of them: ``segments`` and ``columns`` find the reading
order, ``furniture`` running heads, ``headings`` the outline, ``blocks`` the block tree.
"""
