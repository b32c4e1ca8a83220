import re
from html import unescape

import pytest
from markupsafe import Markup

from bench.leaderboard.equations import LETTERS, equation, sentence
from bench.metrics import catalogue
from bench.plugins.describe import paragraphs
from bench.plugins.registry import Registry
from tests.fixtures.results import HOSTILE


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("sigma_l^2", "<i>σ</i><sub>l</sub><sup>2</sup>"),  # noqa: RUF001  # Greek letters are what is tested
        ("w~ = w + alpha * eps", "<i>w</i>\u0303 = <i>w</i> + <i>α</i> · <i>ε</i>"),  # noqa: RUF001
        ("m ~ Bernoulli(1 - p)", "<i>m</i> ~ Bernoulli(1 \u2212 <i>p</i>)"),
        ("sum_k -log p", "∑<sub>k</sub> \u2212log <i>p</i>"),
        ("(K + n I)^-1", "(<i>K</i> + <i>n</i> <i>I</i>)<sup>\u22121</sup>"),
        ("q_k+1(x) <= ||w*||", "<i>q</i><sub>k+1</sub>(<i>x</i>) ≤ ‖<i>w</i>*‖"),
        ("the k-th smallest m_-i(x)", "the <i>k</i>-th smallest <i>m</i><sub>\u2212i</sub>(<i>x</i>)"),
        ("length_scale and nll_mc stay", "length_scale and nll_mc stay"),
        ("`batch` rows", "<code>batch</code> rows"),
        ("W o (r s^T)", "<i>W</i> ∘ (<i>r</i> <i>s</i><sup>T</sup>)"),
        ("layer l's weights", "layer <i>l</i>&#39;s weights"),
        ("q(w) is a point", "<i>q</i>(<i>w</i>) is a point"),
        ("sum_{s,t} m +- 3", "∑<sub>s,t</sub> <i>m</i> ± 3"),
    ],
)
def test_notation(source: str, shown: str) -> None:
    assert equation(source) == Markup(shown)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("is at least 1 - alpha, as sigma_l", "is at least 1 - <i>α</i>, as <i>σ</i><sub>l</sub>"),  # noqa: RUF001
        ("s_k scales, w_SWA is the mean", "<i>s</i><sub>k</sub> scales, <i>w</i><sub>SWA</sub> is the mean"),
        ("x^2 and prior^-2", "<i>x</i><sup>2</sup> and prior<sup>\u22122</sup>"),
        ("learn_noise, nll_mc and mean-variance stay", "learn_noise, nll_mc and mean-variance stay"),
        ("x_train, n_jobs and a_b.py stay", "x_train, n_jobs and a_b.py stay"),
        ("an alphabet, alpha-beta search, 3.pi", "an alphabet, alpha-beta search, 3.pi"),
    ],
)
def test_letters_in_sentences(source: str, shown: str) -> None:
    assert sentence(source) == Markup(shown)


def test_equations_of_all_methods_and_metrics_keep_their_words_and_numbers() -> None:
    plugins = Registry().plugins("method").values()
    sources = [part.text for one in plugins for part in paragraphs(str(one.module().__doc__)) if part.equation]
    sources += [metric.formula for metric in catalogue().values()]
    assert len(sources) > 100
    signs = {"α": "alpha", "∑": "sum", "√": "sqrt", "∇": "grad"}  # noqa: RUF001
    for source in sources:
        shown = unescape(re.sub(r"<[^>]+>", "", equation(source)))
        assert re.findall(r"\d+", shown) == re.findall(r"\d+", source)
        for sign, word in signs.items():
            assert shown.count(sign) == len(re.findall(rf"(?<![a-z]){word}(?![a-z])", source)), source
        words = [word for word in re.findall(r"[a-z]{5,}", source) if word not in LETTERS]
        assert all(word in shown for word in words), source


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_escaped(name: str) -> None:
    assert "<script" not in equation(name)
    assert "<td" not in equation(name)
    assert "<h1" not in equation(name)
