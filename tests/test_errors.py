from bench.errors import UserError, unknown_name


def test_near_names_are_offered() -> None:
    error = unknown_name("method", "mc-dropuot", ["deterministic", "mc-dropout"], "quick.toml: methods")
    assert isinstance(error, UserError)
    assert str(error) == "quick.toml: methods: unknown method 'mc-dropuot'; did you mean mc-dropout?"


def test_all_names_are_listed_when_none_is_near() -> None:
    assert str(unknown_name("suite", "zzzzzz", ["toy", "quick"])) == "unknown suite 'zzzzzz'; known: quick, toy"


def test_nothing_known() -> None:
    assert str(unknown_name("suite", "x", [])).endswith("known: none")
