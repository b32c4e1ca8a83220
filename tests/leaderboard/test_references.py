import inspect

import pytest

from bench.leaderboard.references import Reference, address_of, cited_in, linked
from bench.plugins.registry import Registry
from tests.fixtures.results import HOSTILE


def test_citations() -> None:
    text = """Gal and Ghahramani 2016, "Dropout as a Bayesian Approximation", arXiv:1506.02142. In
    training (Li, Chen, Carlson and Carin 2016, arXiv:1512.07666, without more). Yuan,
    Li and Kuruoglu, "Uncertainty: A View", 2025, arXiv:2501.12314, section III. Koenker and Bassett 1978, "Regression
    Quantiles" (Econometrica), doi:10.2307/1913643; Guo et al. 2017, arXiv:1706.04599: T. Since Boston 1978 nothing."""
    assert cited_in(text) == (
        Reference(
            'Gal and Ghahramani 2016, "Dropout as a Bayesian Approximation", arXiv:1506.02142',
            "Gal and Ghahramani 2016",
            "https://arxiv.org/abs/1506.02142",
        ),
        Reference(
            "Li, Chen, Carlson and Carin 2016, arXiv:1512.07666", "Li et al. 2016", "https://arxiv.org/abs/1512.07666"
        ),
        Reference(
            'Yuan, Li and Kuruoglu, "Uncertainty: A View", 2025, arXiv:2501.12314',
            "Yuan et al. 2025",
            "https://arxiv.org/abs/2501.12314",
        ),
        Reference(
            'Koenker and Bassett 1978, "Regression Quantiles" (Econometrica), doi:10.2307/1913643',
            "Koenker and Bassett 1978",
            "https://doi.org/10.2307/1913643",
        ),
        Reference("Guo et al. 2017, arXiv:1706.04599", "Guo et al. 2017", "https://arxiv.org/abs/1706.04599"),
    )
    assert len(cited_in(f"{text} {text}")) == 5


@pytest.mark.parametrize("name", sorted(Registry().plugins("method")))
def test_every_identifier_of_a_method_is_in_a_citation_of_it(name: str) -> None:
    doc = inspect.cleandoc(Registry().plugins("method")[name].module().__doc__ or "")
    found = cited_in(doc)
    assert found
    assert doc.count("arXiv:") == sum("arxiv.org" in one.address for one in found)


def test_links() -> None:
    assert linked("see arXiv:1506.02142.") == (
        'see <a href="https://arxiv.org/abs/1506.02142" rel="noreferrer">arXiv:1506.02142</a>.'
    )
    assert 'href="https://doi.org/10.1000/a(b)c"' in linked("(doi:10.1000/a(b)c).")
    assert 'href="https://example.org/a?b=1&amp;c"' in linked("https://example.org/a?b=1&c, and")
    assert linked("option `rate` <b>") == "option <code>rate</code> &lt;b&gt;"
    assert "href" not in linked("javascript:alert(1) file:///etc arXiv:none")
    assert address_of("arXiv:hep-th/9901001") == "https://arxiv.org/abs/hep-th/9901001"
    assert address_of("ftp://example.org") == ""


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_escaped(name: str) -> None:
    assert "<script" not in linked(name)
    assert "<h1" not in linked(f"https://x/{name}")


def test_a_web_address_behind_a_citation_is_its_link() -> None:
    text = 'Rasmussen and Williams 2006, "Gaussian Processes", https://gaussianprocess.org/gpml, chapters 2 and 5.'
    (found,) = cited_in(text)
    assert (found.short, found.address) == ("Rasmussen and Williams 2006", "https://gaussianprocess.org/gpml")
