"""HTTP contracts, one module or package each: wire models, ``read``, ``show``, ``fail``, routes.

========  ======================================  ==========================================
contract  routes                                  how a refusal is reported
========  ======================================  ==========================================
query     ``/query``                              ``is_refusal``, ``refusal_reason``
ask       ``/ask``, ``/search``                   ``has_relevant_context: false``
envelope  ``/api/v2/query``, ``/api/query``       ``status: "refused"``
plain     ``/api/v1/query``                       the answer's text, ``sources: []``
chat      ``/chat/run``, ``/chat/threads``        ``should_answer: false``
openai    ``/v1/chat/completions``                the answer's text, ``sources: []``
========  ======================================  ==========================================

``read(body)`` converts a request to a question, ``show(reply)`` a reply to a response,
``fail(error)`` an error to a status and a body, and ``add_routes`` adds the routes; the module's
``CONTRACT`` declares them. To add a contract, add a module here and its ``CONTRACT`` to
``registry.py``. Shared code is in ``base.py``, ``errors.py`` and ``bythebook.documents`` (fields,
and answers that fit a contract's limits). The terms of the wire formats (chunk, source, session)
are used only in these two packages.
"""
