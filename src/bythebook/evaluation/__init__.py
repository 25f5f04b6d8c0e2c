"""Evaluation of a book with question sets. No model acts as judge: every figure is counted.

``questions`` and ``make_questions`` provide rows, ``run`` asks them, ``grade`` turns each reply
into a case, by ``nuggets`` if the row has them, ``metrics`` turns cases into figures, ``targets``
compares them with limits, and ``tables``, ``json_report`` and ``pages`` show them.
``support_calibration`` measures the verifier on claims made from the book.
"""
