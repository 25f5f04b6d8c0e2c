"""One file for each contract: its wire models, and ``read``, ``show`` and ``fail``.

========  ====  ======================================  ==========================================
file      seed  routes                                  says no by
========  ====  ======================================  ==========================================
book      S0    ``/query``                              ``is_refusal``, ``refusal_reason``
agent     S1    ``/ask``, ``/search``                   ``has_relevant_context: false``
envelope  S2    ``/api/v2/query``, ``/api/query``       ``status: "refused"``
plain     S3    ``/api/v1/query``                       the answer's text, ``sources: []``
chat      S4    ``/chat/run``, ``/chat/threads``        ``should_answer: false``
openai          ``/v1/chat/completions``                the answer's text, ``sources: []``
========  ====  ======================================  ==========================================

``read(body)`` makes a question of a request, ``show(reply)`` a response of a reply, ``fail(error)``
a status and a body of an error. A new contract is one more file, and its routes in
``serve/routes.py``. What all share is in ``wire.py`` (fields, errors) and ``shape.py`` (answers
that fit). The wire's own words (chunk, source, session) stay in here.
"""
