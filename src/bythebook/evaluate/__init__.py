"""Question sets in; figures, curves and a report out. No model judges: every figure is counted.

``questions`` and ``make`` give rows, ``run`` asks them, ``grade`` turns each reply into a case,
``measure`` turns cases into figures, ``bars`` compares them, and ``table``, ``document`` and
``report`` show them.
"""
