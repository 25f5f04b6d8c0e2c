"""PDF files with a text layer: words with boxes, layout, headings, chapters.

``source`` is the format. It runs ``worker`` in a process of its own, which reads the bytes with
``extraction`` (PDFium) and makes chapters of them: ``layout`` finds the reading order and running
heads, ``headings`` locates the outline, ``blocks`` makes the block tree.
"""
