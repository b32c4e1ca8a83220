from tests.training.conftest import fit_in_order, member

__all__ = ["fit_in_order", "member"]
