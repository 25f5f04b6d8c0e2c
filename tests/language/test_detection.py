"""Language detection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.detection import language_of, likeliest

TEXTS = {
    "en": "A node is a process that performs computation. Nodes are combined into a graph and talk "
    "to one another over topics.",
    "de": "Ein Knoten ist ein Prozess, der rechnet. Knoten werden zu einem Graphen verbunden und "
    "sprechen über Topics miteinander.",
    "fr": "Un nœud est un processus qui effectue un calcul. Les nœuds sont reliés dans un graphe "
    "et se parlent par des sujets.",
    "es": "Un nodo es un proceso que realiza un cálculo. Los nodos se combinan en un grafo y "
    "hablan entre sí por medio de temas.",
    "it": "Un nodo è un processo che esegue un calcolo. I nodi sono collegati in un grafo e "
    "parlano tra di loro per mezzo di argomenti.",
    "pt": "Um nó é um processo que faz um cálculo. Os nós são ligados em um grafo e falam uns "
    "com os outros por meio de tópicos.",
    "nl": "Een knoop is een proces dat een berekening uitvoert. De knopen worden tot een graaf "
    "verbonden en praten met elkaar over onderwerpen.",
    "sv": "En nod är en process som utför en beräkning. Noderna är förbundna i en graf och talar "
    "med varandra om ämnen.",
    "pl": "Węzeł to proces, który wykonuje obliczenia. Węzły są połączone w graf i rozmawiają ze "
    "sobą za pomocą tematów.",
    "tr": "Düğüm, hesaplama yapan bir süreçtir. Düğümler bir çizge için birleştirilir ve konular "
    "ile daha çok konuşur.",
    "ru": "Узел — это процесс, который выполняет вычисления.",
    "zh": "节点是执行计算的进程。节点组合成图，并通过主题相互通信。",
    "ja": "ノードは計算を行うプロセスです。",
    "ur": "نوڈ ایک عمل ہے جو حساب کرتا ہے۔",
    "fa": "گره یک فرایند است که محاسبه می‌کند.",
    "ar": "العقدة عملية تقوم بالحساب.",
    "hi": "नोड एक प्रक्रिया है जो गणना करती है।",
}


@pytest.mark.parametrize("language", TEXTS)
def test_language_is_detected_by_script_and_function_words(language: str) -> None:
    assert language_of(TEXTS[language].split()) == language


@pytest.mark.parametrize("text", ["", "Text", "ros2 topic list", "E = mc²", "Qdrant"])
def test_undecided_text_is_english(text: str) -> None:
    assert language_of(text.split()) == "en"


def test_an_english_page_that_quotes_german_stays_english() -> None:
    quote = "He called it the Ding an sich, das Ding, wie es ist, und nicht wie es erscheint."
    assert language_of((TEXTS["en"] + quote).split()) == "en"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Was ist ein Knoten?", "de"),
        ("What is a node?", "en"),
        ("نوڈ کیا ہے؟", "ur"),
        ("ros2?", "de"),
    ],
)
def test_question_language_is_one_of_the_book(question: str, language: str) -> None:
    assert likeliest(question.strip("?؟").split(), ["de", "en", "ur"]) == language


@given(st.lists(st.text(max_size=8)), st.permutations(["en", "de", "zh"]))
def test_the_likeliest_language_is_one_of_those_given(
    words: list[str], languages: list[str]
) -> None:
    assert likeliest(words, languages) in languages
