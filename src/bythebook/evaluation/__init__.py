"""Evaluation of a book with question sets. No model acts as judge: every figure is counted.

``questions`` and ``make_questions`` provide rows, ``run`` asks them, ``grade`` turns each reply
into a case, ``metrics`` turns cases into figures and compares them with targets, ``report`` and
``pages`` show them.
"""
