import numpy as np
import pytest
from scipy import ndimage
from scipy.stats import kstest

from bench.api.corruptions import (
    CORRUPTIONS,
    SEVERITIES,
    Images,
    _contrast,
    _gaussian_blur,
    _motion_blur,
    _occlusion,
    _pixelate,
    _quantised,
    add_noise,
    corrupt,
    corrupted_test_images,
    foreign_test_images,
    inverted,
    noisy_test_images,
    permuted,
    uniform_noise,
)
from bench.errors import UserError


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def images() -> Images:
    """Smooth pictures of the shape of CIFAR-10's, pixels inside 0..1."""
    rough = generator(1).random((60, 3, 8, 8), dtype=np.float32)
    smooth: Images = ndimage.zoom(rough, (1, 1, 4, 4), order=1).astype(np.float32)
    return smooth * np.float32(0.8) + np.float32(0.1)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_every_kind_is_deterministic_bounded_and_grows_with_severity(kind: str, images: Images) -> None:
    before, distances = images.copy(), []
    for severity in range(1, SEVERITIES + 1):
        changed = corrupt(images, kind, severity, generator(3))
        np.testing.assert_array_equal(changed, corrupt(images, kind, severity, generator(3)))
        assert (changed.shape, changed.dtype.name) == (images.shape, "float32")
        assert (changed.min() >= 0, changed.max() <= 1) == (True, True)
        distances.append(float(np.square(changed - images).mean()))
    np.testing.assert_array_equal(images, before)
    assert distances[0] > 0
    assert distances == sorted(distances)
    assert len(set(distances)) == SEVERITIES


@pytest.mark.parametrize("kind", [k for k in CORRUPTIONS if "noise" in k or k in ("motion-blur", "occlusion")])
def test_random_kinds_follow_the_generator(kind: str, images: Images) -> None:
    assert not np.array_equal(corrupt(images, kind, 5, generator(1)), corrupt(images, kind, 5, generator(2)))


@pytest.mark.parametrize("kind", ["gaussian-blur", "motion-blur", "pixelate", "contrast"])
def test_kinds_that_average_leave_a_plain_surface_alone(kind: str) -> None:
    plain = np.full((3, 2, 8, 8), 0.3, np.float32)
    np.testing.assert_allclose(corrupt(plain, kind, 5, generator()), plain, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "variance"),
    [
        ("gaussian-noise", 0.12**2),
        ("shot-noise", 0.4 / 50),  # a Poisson count of mean 0.4 * 50, in units of 50
        ("speckle-noise", (0.3 * 0.4) ** 2),
    ],
)
def test_noise_has_the_mean_and_variance_of_its_law(kind: str, variance: float) -> None:
    grey = np.full((100, 1, 40, 40), 0.4, np.float32)
    changed = corrupt(grey, kind, 5, generator())
    assert changed.mean() == pytest.approx(0.4, abs=5 * np.sqrt(variance / grey.size))
    assert changed.var() == pytest.approx(variance, rel=0.02)


def test_impulses_are_half_black_half_white_and_as_many_as_said() -> None:
    grey = np.full((100, 1, 40, 40), 0.4, np.float32)
    changed = corrupt(grey, "impulse-noise", 5, generator())
    for value, share in ((0, 0.035), (1, 0.035), (np.float32(0.4), 0.93)):
        assert (changed == value).mean() == pytest.approx(share, abs=0.003)


def test_noise_of_a_given_deviation_is_not_cut_off() -> None:
    black = np.zeros((50, 3, 32, 32))
    noisy = add_noise(black, 0.07, generator())
    assert noisy.std() == pytest.approx(0.07, rel=0.01)
    assert noisy.min() < -0.2
    np.testing.assert_array_equal(add_noise(black, 0, generator()), black)
    np.testing.assert_allclose(noisy * 2, add_noise(black, 0.14, generator()), rtol=1e-5)  # the same noise, stronger
    with pytest.raises(UserError, match="negative"):
        add_noise(black, -0.1, generator())


@pytest.mark.parametrize("width", [0.4, 0.8, 1.3])
def test_gaussian_blur_is_scipys(width: float, images: Images) -> None:
    expected = ndimage.gaussian_filter(images, (0, 0, width, width), mode="reflect", truncate=4)
    np.testing.assert_allclose(_gaussian_blur(images, width, generator()), expected, atol=1e-6)


@pytest.mark.parametrize("length", [2, 3, 7])
def test_motion_blur_is_a_running_mean_along_one_axis(length: int, images: Images) -> None:
    changed = _motion_blur(images, length, generator())
    options = [ndimage.uniform_filter1d(images, length, axis, mode="reflect") for axis in (2, 3)]
    fits = np.array(
        [[np.allclose(a, b, atol=1e-6) for a, b in zip(changed, option, strict=True)] for option in options]
    )
    assert fits.any(0).all()
    assert 10 < fits[0].sum() < 50


def test_pixelate_is_the_mean_of_blocks(images: Images) -> None:
    blocks = images.reshape(60, 3, 16, 2, 16, 2).mean((3, 5))
    np.testing.assert_allclose(_pixelate(images, 0.5, generator()), blocks.repeat(2, 2).repeat(2, 3), rtol=1e-5)
    np.testing.assert_allclose(_pixelate(images, 1.0, generator()), images, rtol=1e-6)
    odd = _pixelate(np.arange(3, dtype=np.float32).reshape(1, 1, 1, 3), 2 / 3, generator())  # 1.5 pixels each
    np.testing.assert_allclose(odd[0, 0, 0], [(0 + 0.5) / 1.5, (0.5 + 2) / 1.5, (0.5 + 2) / 1.5], rtol=1e-6)


def test_contrast_brightness_and_levels(images: Images) -> None:
    changed = _contrast(images, 0.25, generator())
    np.testing.assert_allclose(changed.mean((2, 3)), images.mean((2, 3)), rtol=1e-5)
    np.testing.assert_allclose(changed.std((2, 3)), 0.25 * images.std((2, 3)), rtol=1e-4)
    np.testing.assert_allclose(corrupt(images, "brightness", 2, generator()), np.minimum(images + 0.1, 1), rtol=1e-6)
    np.testing.assert_allclose(np.unique(_quantised(images, 3, generator())), [0, 0.5, 1])


def test_occlusion_is_one_square_in_every_image() -> None:
    black = np.zeros((2000, 1, 16, 16), np.float32)
    inside = _occlusion(black, 0.5, generator()) == 0.5
    assert (inside.sum((2, 3)) == 64).all()
    assert (inside.any(3).sum(2) == 8).all()
    assert (inside.any(2).sum(2) == 8).all()
    assert inside.any((0, 1)).all()  # every place is hit by some


def test_foreign_images(images: Images) -> None:
    np.testing.assert_allclose(inverted(images), 1 - images)
    np.testing.assert_allclose(inverted(inverted(images)), images, rtol=1e-6)
    mixed = permuted(images, generator())
    np.testing.assert_array_equal(np.sort(mixed.reshape(60, 3, -1)), np.sort(images.reshape(60, 3, -1)))
    number = np.arange(1024, dtype=np.float32).reshape(1, 1, 32, 32)
    order = permuted(number, generator())[0, 0].ravel().astype(int)
    np.testing.assert_array_equal(mixed.reshape(60, 3, -1), images.reshape(60, 3, -1)[:, :, order])  # one order for all
    assert (order != np.arange(1024)).mean() > 0.9
    noise = uniform_noise(images, generator())
    assert noise.shape == images.shape
    assert abs(np.corrcoef(noise.ravel(), images.ravel())[0, 1]) < 0.01
    assert kstest(noise.ravel(), "uniform").pvalue > 1e-3


def test_images_of_a_split_are_the_same_wherever_they_are_asked_for(images: Images) -> None:
    def made(number: int) -> list[Images]:
        return [
            corrupted_test_images(images, "gaussian-noise", 3, number),
            foreign_test_images(images, "permuted", number),
            noisy_test_images(images, 0.3, number),
        ]

    np.testing.assert_array_equal(made(4), made(4))
    assert not any(np.array_equal(one, other) for one, other in zip(made(4), made(5), strict=True))
    noise = [(noisy_test_images(images, std, 1) - images) / std for std in (0.1, 0.4)]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-5)  # the same noise, only stronger


def test_what_cannot_be_corrupted(images: Images) -> None:
    with pytest.raises(UserError, match="did you mean gaussian-blur"):
        corrupt(images, "gausian-blur", 1, generator())
    for severity in (0, 6):
        with pytest.raises(UserError, match="from 1 to 5"):
            corrupt(images, "contrast", severity, generator())
    with pytest.raises(UserError, match="did you mean inverted"):
        foreign_test_images(images, "invertd", 0)
    with pytest.raises(UserError, match=r"got \[60, 3072\]"):
        corrupt(images.reshape(60, -1), "contrast", 1, generator())
