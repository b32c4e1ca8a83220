from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.metrics.margins import Margin
from bench.plan.cells import Task, plan
from bench.plan.suite import check_suite, load_suite, suite_names
from bench.plugins.registry import Registry
from bench.spec.plugin import PluginSpec

WriteSuite = Callable[..., str]
GOOD = 'title = "t"\n[datasets.toy]\n[methods.deterministic]\n'


def refused(path: str, changes: tuple[str, ...] = ()) -> str:
    with pytest.raises(UserError) as caught:
        load_suite(path, changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", suite_names())
def test_every_built_in_suite_loads_and_its_plugins_take_its_options(name: str) -> None:
    suite = load_suite(name)
    registry = Registry()
    assert suite.title == suite_names()[name]
    for label, method in suite.methods.items():
        registry.make("method", method.use or label, method.options, label)
    for label, dataset in suite.datasets.items():
        registry.make("dataset", dataset.use or label, dataset.options, label)
        assert suite.protocol_for(label).draws > 0


def test_the_suites_of_the_paper_and_of_the_first_run() -> None:
    quick, toy = load_suite("quick"), load_suite("toy")
    assert (set(quick.datasets), quick.seeds) == ({"toy", "diabetes", "digits"}, 5)
    assert len(quick.methods) == 5
    paper = toy.protocol_for("toy")
    assert (paper.draws, paper.training.epochs, paper.training.learning_rate) == (500, 500, 0.005)
    assert paper.network == PluginSpec("mlp", options={"hidden": [100]})
    assert (paper.training.momentum, paper.training.optimizer) == (0.9, "adam")
    assert (toy.methods["mc-dropout"].options, toy.methods["mcni-fixed"].options) == ({"rate": 0.2}, {"alpha": 0.05})


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        (GOOD.replace("title", "titel"), "titel", "did you mean title?"),
        ("sedes = 3\n" + GOOD, "sedes", "did you mean seeds "),
        (GOOD + "[training]\nepoch = 3\n", "training: unknown key 'epoch'", "did you mean epochs?"),
        (GOOD + "[network]\nkind = 3\n", "network.kind", "the name of a network is expected, got 3"),
        (
            'title = "t"\n[datasets.toy]\ntraining.epoch = 3\n[methods.deterministic]\n',
            "datasets.toy: training: unknown key 'epoch'",
            "did you mean epochs?",
        ),
        (GOOD + "[training]\noptimizer = 'adamw'\n", "training.optimizer", "'adam' or 'sgd', got 'adamw'"),
        (GOOD + "[training]\nepochs = 'many'\n", "training.epochs", "valid integer, got 'many'"),
        (GOOD + "[training]\nepochs = 0\n", "training.epochs", "greater than 0, got 0"),
        (GOOD + "[training]\nlearning_rate = nan\n", "training.learning_rate", "finite number, got nan"),
        ("training = 3\n" + GOOD, "training", "dictionary"),
        ("draws = 1.5\n" + GOOD, "draws", "valid integer"),
        ("validation = 1.0\n" + GOOD, "validation", "less than 1"),
        ("scale_inputs = 1\n" + GOOD, "scale_inputs", "valid boolean"),
        ("seeds = '3'\n" + GOOD, "seeds", "valid integer, got '3'"),
        ("seeds = true\n" + GOOD, "seeds", "valid integer, got True"),
        ("seeds = 0\n" + GOOD, "seeds", "greater than 0"),
        ("splits = 0\n" + GOOD, "splits", "greater than 0"),
        ("splits = 2\n" + GOOD, "splits", "5 seeds cannot be shared evenly by 2 splits; seeds counts all repeats"),
        ("seeds = 4\nsplits = 5\n" + GOOD, "splits", "such as seeds = 5: 1 on each split"),
        ("title = 3\n" + GOOD.partition("\n")[2], "title", "valid string, got 3"),
        (GOOD.partition("\n")[2], "title", "required"),
        ("", "title", "required"),
        ('title = "t"\n[datasets.toy]\n', "methods", "name at least one"),
        ('title = "t"\n[datasets.toy]\n[methods]\n', "methods", "name at least one"),
        ('title = "t"\ndatasets = ["toy"]\n[methods.deterministic]\n', "datasets", "valid dictionary"),
        ('title = "t"\n[datasets]\ntoy = 3\n[methods.deterministic]\n', "datasets.toy", "valid dictionary"),
        (GOOD + "[probe]\nkind = 'shift'\nseverety = 3\n", "probe: unknown key 'severety'", "mean severities?"),
        (GOOD + "[probe]\nkind = 'softmax-noise'\nlevel = [1.0]\n", "probe: unknown key 'level'", "mean levels"),
        (GOOD + "[probe]\nkind = 'test'\nrows = 3\n", "probe: unknown key 'rows'", "did you mean draws"),
        (GOOD + "[probe]\nkind = 'shfit'\n", "probe: unknown kind 'shfit'", "did you mean shift or"),
        (GOOD + "[probe]\nrows = 3\n", "probe.kind", "required"),
        ("probe = 3\n" + GOOD, "probe", "dictionary"),
        (GOOD + "[probe]\nkind = 'shift'\nseverities = [6]\n", "probe.severities.0", "less than or equal to 5, got 6"),
        (GOOD + "[probe]\nkind = 'shift'\nseverities = []\n", "corruptions and severities", "go together"),
        (GOOD + "[probe]\nkind = 'shift'\ncorruptions = ['contrst']\n", "probe.corruptions", "did you mean contrast?"),
        (GOOD + "[probe]\nkind = 'shift'\nforeign = ['invertd']\n", "probe.foreign", "did you mean inverted or"),
        (GOOD + "[probe]\nkind = 'shift'\nforeign = ['inverted', 'inverted']\n", "probe.foreign", "named twice"),
        (GOOD + "[probe]\nkind = 'softmax-noise'\nlevels = [0.2, 0.1]\n", "probe.levels", "the lowest first"),
        (GOOD + "[probe]\nkind = 'softmax-noise'\nlevels = []\n", "probe.levels", "at least one level"),
        ("baseline = 'determinstic'\n" + GOOD, "baseline", "did you mean deterministic?"),
        ("metrics = ['rmsee']\n" + GOOD, "metrics: unknown metric 'rmsee'", "did you mean rmse"),
        ("metrics = 'rmse'\n" + GOOD, "metrics", "valid list"),
        ("name = 'x'\n" + GOOD, "name", "remove the key"),
        (GOOD + "[protocol]\ndraws = 3\n", "protocol", "write its keys at the top level"),
        ("_where = 'x'\n" + GOOD, "_where", "unknown key"),
        ("title = \n", "not valid TOML", "line 1"),
        ("title = 't'\ntitle = 'u'\n", "not valid TOML", "line 2"),
    ],
)
def test_a_mistake_names_file_key_and_what_is_allowed(
    text: str, key: str, reason: str, write_suite: WriteSuite
) -> None:
    path = write_suite(text)
    message = refused(path)
    assert message.startswith(f"{path}: ")
    assert key in message
    assert reason in message
    assert ("datasets.toy" in message) == ("datasets.toy" in key)  # the place where it was written


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'title = "t"\n[datasets.toi]\n[methods.deterministic]\n',
            "datasets.toi: unknown dataset 'toi'; did you mean toy?",
        ),
        (
            'title = "t"\n[datasets.toy]\n[methods.mc-dropot]\n',
            "methods.mc-dropot: unknown method 'mc-dropot'; did you mean mc-dropout",
        ),
        (
            'title = "t"\n[datasets.toy]\n[methods.a]\nuse = "mc-dropot"\n',
            "methods.a: unknown method 'mc-dropot'; did you mean mc-dropout",
        ),
        (
            'title = "t"\n[datasets.toy]\nrowz = 3\n[methods.deterministic]\n',
            "datasets.toy: unknown option 'rowz'; did you mean rows?",
        ),
        ('title = "t"\n[datasets.toy]\ntest = "old"\n[methods.deterministic]\n', "datasets.toy: test: "),
        ('title = "t"\n[datasets.toy]\nrows = 1\n[methods.deterministic]\n', "datasets.toy: rows must be at least 2"),
        (
            'title = "t"\n[datasets.toy]\n[methods.mc-dropout]\nrate = 1.0\n',
            "methods.mc-dropout: rate must be in [0, 1)",
        ),
    ],
)
def test_a_mistake_about_a_plugin_names_the_file_too(text: str, reason: str, write_suite: WriteSuite) -> None:
    from bench.plan.cells import plan

    path = write_suite(text)
    with pytest.raises(UserError) as caught:
        list(plan(load_suite(path), Registry()))
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_files_that_are_no_suites(tmp_path: Path) -> None:
    assert "no such file" in refused(str(tmp_path / "gone.toml"))
    (tmp_path / "folder.toml").mkdir()
    assert "no such file" in refused(str(tmp_path / "folder.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refused(str(tmp_path / "binary.toml"))
    assert "did you mean quick" in refused("quik")
    assert "unknown suite" in refused("../suites/quick")  # a name, not a path
    assert "unknown suite" in refused("")
    refused("/proc/self/mem.toml")


def test_set_changes_each_level() -> None:
    changes = (
        "training.epochs=7",
        "draws = 9",
        "scale_inputs=false",
        "methods.mc-dropout.rate=0.25",
        "datasets.diabetes.training.epochs=8",
        "network.hidden=[3, 4]",
        "training.optimizer=sgd",
        'training.schedule="cosine"',
        "title=a b",
        "baseline=deterministic",
    )
    suite = load_suite("quick", changes)
    assert suite.title == "a b"
    assert suite.baseline == "deterministic"
    assert suite.methods["mc-dropout"].options == {"rate": 0.25}
    diabetes = suite.protocol_for("diabetes")
    assert (diabetes.draws, diabetes.scale_inputs, diabetes.training.epochs) == (9, False, 8)
    assert (diabetes.training.optimizer, diabetes.training.schedule) == ("sgd", "cosine")
    # The suite gives toy and digits epochs of their own; the command line wins over both.
    assert suite.protocol_for("toy").training.epochs == 7
    assert suite.protocol_for("digits").training.epochs == 7
    assert suite.protocol_for("toy").network.options == {"hidden": [3, 4]}
    assert suite.protocol_for("toy").training.patience == 100  # what was not named stays the dataset's


def test_another_network_leaves_the_options_of_the_first_behind() -> None:
    chosen = load_suite("quick", ("network.width=6", "network.kind=resnet8"))
    assert chosen.protocol_for("toy").network == PluginSpec("resnet8", options={"width": 6})  # toy had hidden = [100]
    assert load_suite("quick", ("network.kind=mlp",)).protocol_for("toy").network.options == {"hidden": [100]}
    own = {"kind": "conv", "hidden": [8]}
    content = {
        "name": "s",
        "title": "t",
        "network": {"hidden": [3], "activation": "tanh"},
        "datasets": {"toy": {}, "wider": {"use": "toy", "network": {"hidden": [7]}}, "digits": {"network": own}},
        "methods": {"deterministic": {}},
    }
    suite = load_suite(content)
    assert suite.protocol_for("digits").network == PluginSpec("conv", options={"hidden": [8]})
    assert suite.protocol_for("wider").network.options == {"hidden": [7], "activation": "tanh"}


def test_the_later_set_wins() -> None:
    assert load_suite("quick", ("seeds=2", "seeds=3")).seeds == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("foo", "expected key=value"),
        ("=3", "expected key=value"),
        (".=3", "expected key=value"),
        ("methods=3", "expected methods.NAME.OPTION=value"),
        ("datasets.toy=3", "expected datasets.NAME.OPTION=value"),
        ("methods.mc-dropot.rate=0.1", "did you mean mc-dropout?"),
        ("datasets.toi.rows=3", "did you mean toy?"),
        ("seeds.x=3", "seeds is a value, not a table"),
        ("training.epochs=", "training.epochs: "),
        ("training.epochs=1\nseeds=2", "training.epochs: "),
        ("trainin.epochs=3", "unknown key 'trainin'; did you mean training?"),
        ("seeds=-1", "seeds: "),
    ],
)
def test_set_mistakes(change: str, reason: str) -> None:
    assert reason in refused("quick", (change,))


def test_only() -> None:
    suite = load_suite("quick").only(["toy"], ["mc-dropout", "deterministic"])
    assert list(suite.datasets) == ["toy"]
    assert list(suite.methods) == ["deterministic", "mc-dropout"]  # in the suite's order
    assert len(suite.only([], []).methods) == 2
    assert load_suite("quick").title == load_suite("quick").only([], ["mc-dropout"]).title
    assert suite.title == "Quick tour"  # what follows the colon is about the datasets of the file
    with pytest.raises(UserError, match=r"suite quick: unknown dataset 'digit'; did you mean digits"):
        load_suite("quick").only(["digit"], [])


def test_an_optional_dataset_runs_only_when_it_is_named(write_suite: WriteSuite) -> None:
    path = write_suite('title = "t"\n[datasets.toy]\n[datasets.digits]\noptional = true\n[methods.deterministic]\n')
    suite = load_suite(path)
    usual, named = suite.only([], []), suite.only(["digits"], [])
    assert (list(usual.datasets), list(named.datasets)) == (["toy"], ["digits"])
    assert list(named.only([], []).datasets) == ["digits"]
    assert not usual.whole  # what is stored of the other one stays in the suite
    assert named.datasets["digits"].options == {}
    path = write_suite('title = "t"\n[datasets.toy]\noptional = true\n[methods.deterministic]\n')
    assert "at least one must not be optional" in refused(path)


def test_a_dataset_with_fewer_splits_takes_fewer_seeds(write_suite: WriteSuite) -> None:
    content = 'title = "t"\nseeds = 4\n[datasets.toy]\n[datasets.digits]\nmost_seeds = 2\n[methods.deterministic]\n'
    suite = load_suite(write_suite(content))
    assert [suite.seeds_of(name) for name in suite.datasets] == [4, 2]
    assert suite.datasets["digits"].options == {}
    tasks = [task for task in plan(suite, Registry()) if isinstance(task, Task)]
    assert {task.dataset: [cell.seed for cell in task.cells] for task in tasks} == {
        "toy": [0, 1, 2, 3],
        "digits": [0, 1],
    }
    assert load_suite(write_suite(content), ("seeds=1",)).seeds_of("digits") == 1
    assert "splits: 2 seeds cannot be shared evenly by 4 splits" in refused(write_suite(f"splits = 4\n{content}"))
    assert "most_seeds: Input should be greater than 0" in refused(write_suite(content.replace("= 2", "= 0")))


def test_added_plugins_can_be_set() -> None:
    suite = load_suite("toy", ("methods.mine.strength=0.5",), methods=["mine", "mc-dropout"], datasets=["diabetes"])
    assert suite.methods["mine"].options == {"strength": 0.5}
    assert suite.methods["mc-dropout"].options == {"rate": 0.2}  # what the suite says of it stays
    assert list(suite.datasets) == ["toy", "diabetes"]


def test_a_huge_wrong_value_is_not_printed_whole() -> None:
    raw = {"name": "n", "title": "t", "seeds": "x" * 10_000, "datasets": {"toy": {}}, "methods": {"deterministic": {}}}
    with pytest.raises(UserError) as caught:
        check_suite(raw, "here")
    assert len(str(caught.value)) < 300


def test_protocols_and_margins_are_validated_once_and_kept(tiny_file: Path) -> None:
    changes = ["gate.margins.rmse=0.02", "datasets.toy.draws=7"]
    suite = load_suite(str(tiny_file), changes)
    for part in (suite, suite.only(["toy"], []), suite.model_copy(update={"seeds": 9})):
        assert part.protocol_for("toy") is suite.protocol_for("toy")
        assert part.protocol_for("toy").draws == 7
        assert part.margins == {"rmse": Margin(0.02, relative=False)}
