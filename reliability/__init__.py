"""Fault, load and attack suite: one test file per failure that readers must never notice.

Each test repeats its fault, counts the damage and records a row. CI runs few repetitions;
``sh reliability.sh --full`` runs all of them and writes ``docs/operators/reliability.md``.
"""
