"""The proving ground: one file for each way in which the product could fail its readers.

Each test does its worst a number of times, counts what was lost, and enters a row with the figure
into the ledger: a quick count in every run, the full one by ``sh prove.sh --full``, which writes
``docs/proof.md``.
"""
