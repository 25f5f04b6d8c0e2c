"""The fake book answers and refuses like a real one."""

from bythebook.refusals import Refusal
from bythebook.testing import PAGES, MemoryThreads, fake_book
from bythebook.types import Answer, Question

_QUESTION = "At how many degrees does a kettle boil water?"


async def test_the_fake_book_answers_from_its_pages_and_refuses_other_questions() -> None:
    async with await fake_book() as book:
        answered = await book.reply(Question(_QUESTION))
        refused = await book.reply(Question("Who won the chess match in 1972?"))
    assert isinstance(answered.outcome, Answer)
    assert "100 degrees" in answered.outcome.text
    assert answered.outcome.citations[0].place.section == ("Kettles",)
    assert isinstance(refused.outcome, Refusal)


async def test_pages_and_parts_can_be_replaced() -> None:
    threads = MemoryThreads()
    tea = "# Tea\n\nGreen tea is steeped for two minutes at 80 degrees.\n"
    pages = {**PAGES, "drinks/tea.md": tea}
    async with await fake_book(pages, threads=threads) as book:
        question = Question("How long is green tea steeped?", thread="one")
        reply = await book.reply(question)
    assert "two minutes" in reply.outcome.text
    thread = await threads.read("one", owner=None)
    assert thread is not None
    assert thread.messages[0].content == question.text


async def test_two_fake_books_share_nothing() -> None:
    async with await fake_book() as one, await fake_book({"a.md": "# A\n\nBees dance.\n"}) as two:
        replies = [await book.reply(Question(_QUESTION, thread="one")) for book in (one, two)]
        assert [type(reply.outcome) for reply in replies] == [Answer, Refusal]
        threads = [await book.threads.read("one", owner=None) for book in (one, two)]
    assert [len(thread.messages) for thread in threads if thread] == [2, 2]
