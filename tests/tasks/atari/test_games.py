import pytest
from ale_py import roms

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.atari.games import rom_id, title


@pytest.mark.parametrize("name", ["AirRaid", "air_raid", "airraid", "ALE/AirRaid-v5", "Air Raid"])
def test_a_game_has_many_names(name):
    assert rom_id(name) == "air_raid"


def test_every_game_is_found_by_its_title():
    for id in roms.get_all_rom_ids():
        assert rom_id(title(id)) == id


@pytest.mark.parametrize(
    ("name", "near"), [("Pongg", "Pong"), ("montezumas_revenge", "MontezumaRevenge")]
)
def test_a_game_that_does_not_exist(name, near):
    with pytest.raises(OptionError) as error:
        rom_id(name)
    assert str(error.value) == f'game: there is no game "{name}". Did you mean "{near}"?'


def test_a_rom_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(OptionError) as error:
        rom_id("Pong")
    line = str(error.value)
    assert line.startswith(f"game: the ROM of Pong is missing: pong.bin is not in {tmp_path}.")
    assert "\n" not in line


def test_a_rom_that_is_another_file(tmp_path, monkeypatch):
    (tmp_path / "pong.bin").write_bytes(b"no game")
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(OptionError, match=r"the ROM of Pong cannot be used: The hash of pong"):
        rom_id("Pong")
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(OptionError, match="the ROM of Pong cannot be used: ROM directory"):
        rom_id("Pong")
