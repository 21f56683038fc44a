import io

import numpy as np
import pytest
from gymnasium import spaces
from mlagents_envs.base_env import DimensionProperty, ObservationSpec, ObservationType
from PIL import Image

from rllib_conspec.unity.client.faults import PlayerTalksNonsense
from rllib_conspec.unity.client.sensors import Sensor, Sensors
from rllib_conspec.unity.messages import PNG, wrap
from rllib_conspec.unity.pixels import PngFiles

MOVES, STAYS = 2, 1
PICTURE = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)


def observation(**fields):
    agent = wrap().unity_output.rl_output.agentInfos["a"].value.add()
    return agent.observations.add(**fields)


def floats(array):
    sent = observation()
    sent.float_data.data = np.asarray(array, np.float32).tobytes()
    return sent


def png(picture, mapping=()):
    return observation(
        compression_type=PNG,
        compressed_data=PngFiles(picture.shape).write(picture),
        compressed_channel_mapping=mapping,
    )


def seen(sensor, sent):
    out = np.zeros(sensor.space.shape, sensor.space.dtype)
    sensor.read(sent, out)
    return out


def test_a_picture_is_bytes_with_channels_last():
    for_all = spaces.Box(0, 255, (6, 5, 3), np.uint8)
    last, first = Sensor("eye", (6, 5, 3)), Sensor("eye", (3, 6, 5))
    assert last.space == first.space == for_all
    assert np.array_equal(seen(last, floats(PICTURE / 255)), PICTURE)
    assert np.array_equal(seen(first, floats(PICTURE.transpose(2, 0, 1) / 255)), PICTURE)
    assert np.array_equal(seen(last, png(PICTURE)), PICTURE)
    assert np.array_equal(seen(first, png(PICTURE)), PICTURE)


def test_the_properties_of_dimensions_decide_where_sizes_do_not():
    assert Sensor("grid", (4, 4, 8), (STAYS, MOVES, MOVES)).space.shape == (4, 8, 4)
    assert Sensor("grid", (4, 4, 8), (MOVES, MOVES, STAYS)).space.shape == (4, 4, 8)


def test_values_out_of_range_do_not_wrap_around():
    sent = np.linspace(-1, 2, 90).reshape(6, 5, 3)
    read = seen(Sensor("eye", (6, 5, 3)), floats(sent))
    assert (np.diff(read.ravel().astype(int)) >= 0).all()
    assert (read.min(), read.max()) == (0, 255)


def test_grey_pictures_come_as_the_mean_of_their_colours():
    expected = np.rint(PICTURE.mean(axis=2, keepdims=True))
    sensor = Sensor("eye", (6, 5, 1))
    assert np.array_equal(seen(sensor, png(PICTURE)), expected)
    assert np.array_equal(seen(sensor, png(PICTURE, [0, 0, 0])), expected)


def test_filling_channels_are_left_out():
    """Four channels are sent as two pictures of three."""
    file = io.BytesIO()
    Image.fromarray(PICTURE).save(file, "png")
    both = PngFiles(PICTURE.shape).write(PICTURE) + file.getvalue()
    sent = observation(compression_type=PNG, compressed_data=both)
    sensor = Sensor("eye", (6, 5, 4))
    expected = np.concatenate([PICTURE, PICTURE[..., :1]], axis=2)
    assert np.array_equal(seen(sensor, sent), expected)
    sent.compressed_channel_mapping.extend([0, 1, 2, 3, -1, -1])
    assert np.array_equal(seen(sensor, sent), expected)


def test_a_vector_stays_as_it_is():
    sensor = Sensor("speed", (3,))
    assert sensor.space == spaces.Box(-np.inf, np.inf, (3,), np.float32)
    assert seen(sensor, floats([1, -2, 3.5])).tolist() == [1, -2, 3.5]


@pytest.mark.parametrize(
    ("shape", "sent", "message"),
    [
        ((3,), floats([1, 2]), "sent 2 numbers for observation 'x'"),
        ((3,), floats([1, 2, np.nan]), "not finite in 'x'"),
        ((6, 5, 3), png(PICTURE[:5]), "shape"),
        ((6, 5, 3), observation(compression_type=PNG, compressed_data=b"no"), "broken picture"),
        ((6, 5, 4), png(PICTURE), "sent 3 channels"),
        ((6, 5, 3), png(PICTURE, [0, 1]), "sent 3 channels"),
    ],
)
def test_what_does_not_fit_is_said(shape, sent, message):
    with pytest.raises(PlayerTalksNonsense, match=message):
        seen(Sensor("x", shape), sent)


def spec(name, *shape):
    properties = (DimensionProperty.UNSPECIFIED,) * len(shape)
    return ObservationSpec(shape, properties, ObservationType.DEFAULT, name)


def test_one_sensor_is_a_box_and_several_are_a_dict():
    assert Sensors([spec("speed", 2)]).space.shape == (2,)
    sensors = Sensors([spec("eye", 6, 5, 3), spec("ray", 2), spec("ray", 4), spec("", 1)])
    shapes = {name: space.shape for name, space in sensors.space.items()}
    assert shapes == {"eye": (6, 5, 3), "ray": (2,), "ray_2": (4,), "observation_3": (1,)}
    rows = sensors.empty(2)
    rows["ray_2"][:] = 0
    sent = [png(PICTURE), floats([1, 2]), floats([3, 4, 5, 6]), floats([7])]
    sensors.read(sent, rows, 1)
    assert np.array_equal(rows["eye"][1], PICTURE)
    assert rows["ray_2"].tolist() == [[0] * 4, [3, 4, 5, 6]]
    with pytest.raises(PlayerTalksNonsense, match="3 observations instead of 4"):
        sensors.read(sent[1:], rows, 0)
