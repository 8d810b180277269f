"""The noise of Gumbel-max sampling: right integers, right distribution, no dependence."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deliberation.noise import gumbel_at, gumbel_noise, splitmix64, uniform_at

BITS = (1 << 64) - 1


def reference(seed: int, index: int) -> int:
    """splitmix64 in unsigned Python integers, after Vigna's C code: output `index` from 0."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def as_int64(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def test_the_published_outputs_for_seed_1234567() -> None:
    outputs = splitmix64(torch.tensor(1234567), torch.arange(5))
    assert [value & BITS for value in outputs.tolist()] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(seed=st.integers(0, BITS), index=st.integers(0, 1 << 40))
def test_int64_arithmetic_gives_the_unsigned_outputs(seed: int, index: int) -> None:
    output = splitmix64(torch.tensor(as_int64(seed)), torch.tensor(index))
    assert int(output) & BITS == reference(seed, index)


@given(key=st.integers(0, BITS), position=st.integers(0, 1 << 20), column=st.integers(0, 1 << 18))
def test_a_uniform_value_is_the_top_53_bits_of_its_own_output(
    key: int, position: int, column: int
) -> None:
    value = uniform_at([key], [position], torch.tensor([column]))
    bits = reference(reference(key, position), column) >> 11
    assert value.item() == min((bits + 0.5) / 2**53, 1 - 2**-53)
    assert 0 < value.item() < 1


def test_the_noise_of_a_row_does_not_depend_on_what_it_is_batched_with() -> None:
    alone = gumbel_noise([7], [3], 1000)
    among = gumbel_noise([1, 2, 7, 9], [0, 3, 3, 5], 1000)
    assert torch.equal(alone[0], among[2])


def test_a_column_s_noise_does_not_depend_on_which_columns_are_asked() -> None:
    whole = gumbel_noise([7, 8], [0, 4], 500)
    columns = torch.tensor([[3, 499, 0], [11, 2, 250]])
    assert torch.equal(gumbel_at([7, 8], [0, 4], columns), whole.gather(1, columns))


def test_negative_keys_and_keys_of_64_bits_are_the_same_bits() -> None:
    assert torch.equal(gumbel_noise([-1], [0], 10), gumbel_noise([BITS], [0], 10))


def test_values_are_uniform_over_columns_positions_and_keys() -> None:
    columns = torch.arange(20000)
    along_columns = uniform_at([42], [0], columns)[0]
    along_positions = uniform_at([42] * 20000, list(range(20000)), torch.tensor([5]))[:, 0]
    along_keys = uniform_at(list(range(20000)), [0] * 20000, torch.tensor([5]))[:, 0]
    for values in (along_columns, along_positions, along_keys):
        assert stats.kstest(values.numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("change", ["key", "position", "column"])
def test_neighbours_in_key_position_or_column_are_independent(change: str) -> None:
    columns = torch.arange(20000)
    base = uniform_at([42], [0], columns)[0].numpy()
    other = {
        "key": lambda: uniform_at([43], [0], columns)[0].numpy(),
        "position": lambda: uniform_at([42], [1], columns)[0].numpy(),
        "column": lambda: uniform_at([42], [0], columns + 1)[0].numpy(),
    }[change]()
    assert abs(np.corrcoef(base, other)[0, 1]) < 4 / np.sqrt(20000)
    table, _, _ = np.histogram2d(base, other, bins=8, range=[[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > 1e-3


def test_the_noise_is_standard_gumbel() -> None:
    noise = gumbel_noise([1, 2, 3], [0, 0, 0], 10000)
    assert stats.kstest(noise.flatten().double().numpy(), stats.gumbel_r.cdf).pvalue > 1e-3
    assert torch.isfinite(noise).all()


def test_gumbel_max_draws_from_the_softmax() -> None:
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    noise = gumbel_noise(list(range(20000)), [0] * 20000, 4)
    drawn = (torch.from_numpy(probabilities).log() + noise).argmax(-1)
    counts = torch.bincount(drawn, minlength=4).numpy()
    assert stats.chisquare(counts, 20000 * probabilities).pvalue > 1e-3
