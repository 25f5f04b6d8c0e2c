"""HTTP contracts: the routes of the data models in ``bythebook.contracts``, and OpenAI's.

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

A ``Contract`` declares them. To add one, write its models and the functions ``read``, ``show`` and
``fail``, and add its routes here and its ``Contract`` to ``registry.py``.
"""
