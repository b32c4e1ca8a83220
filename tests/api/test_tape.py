import pytest
import torch
from scipy import stats

from bench.api.tape import BLOCK, BlankTape, LiveTape, Tape, TapeLength, block_calls, generator, numbers, stream


def test_a_tape_is_read_in_order_and_each_number_once() -> None:
    tape = Tape(torch.arange(10.0), torch.arange(5.0) / 10)
    assert tape.normal((2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tape.uniform((2,)).tolist() == pytest.approx([0, 0.1])
    assert tape.normal((4,)).tolist() == [6, 7, 8, 9]
    assert tape.length == TapeLength(10, 2)


def test_a_tape_that_runs_out_says_what_a_method_did_wrong() -> None:
    with pytest.raises(RuntimeError, match="same random numbers in every call"):
        Tape(torch.zeros(3), torch.zeros(0)).normal((4,))


def test_integers_are_in_range_even_at_the_edge_of_rounding() -> None:
    edge = torch.tensor([0.0, 0.999, 1 - 2**-24])
    tape = Tape(torch.zeros(0), edge)
    assert [int(tape.integer(7)) for _ in range(3)] == [0, 6, 6]


def test_a_blank_tape_measures_what_is_read() -> None:
    tape = BlankTape()
    assert tape.normal((3, 4)).shape == (3, 4)
    assert tape.uniform((5,)).tolist() == [0.5] * 5
    tape.integer(3)
    assert tape.length == TapeLength(12, 6)


def test_a_live_tape_reads_the_stream_of_its_generator() -> None:
    tape = LiveTape(generator(3, "x"))
    assert torch.equal(tape.normal((4,)), torch.randn(4, generator=generator(3, "x")))
    assert tape.length == TapeLength(4, 0)


def test_streams_differ_by_every_part_of_their_name_and_fit_a_generator() -> None:
    names = [stream(seed, *path) for seed in (0, 1, 10) for path in ((), ("a",), ("b",), ("a", 1), ("a", 11))]
    assert len(set(names)) == len(names)
    assert all(0 <= name < 2**63 for name in names)
    assert stream(1, 0) != stream(10)  # no two paths run together into one name


def test_numbers_follow_their_laws_and_leave_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    normals, uniforms = numbers(generator(0, "law"), 100, TapeLength(200, 300))
    assert torch.equal(before, torch.random.get_rng_state())
    assert normals.shape == (100, 200)
    assert uniforms.shape == (100, 300)
    assert stats.kstest(normals.flatten().numpy(), "norm").pvalue > 1e-3
    assert stats.kstest(uniforms.flatten().numpy(), "uniform").pvalue > 1e-3


def test_blocks_depend_on_the_member_alone() -> None:
    assert block_calls(TapeLength(0, 0), 7) == 7
    assert block_calls(TapeLength(BLOCK, 0), 7) == 1
    assert block_calls(TapeLength(BLOCK // 4, BLOCK // 4), 7) == 2
