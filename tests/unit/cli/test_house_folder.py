"""The embedded house's folder, keys, ports and process manager's configuration."""

from __future__ import annotations

import configparser
import socket
import stat
from pathlib import Path

import pytest

from services.cli.house.folder import SOCKET_PATH_BYTES_MAX, Folder, FolderError
from services.cli.house.keys import HouseKeys, existing
from services.cli.house.logs import ErrorTail
from services.cli.house.ports import Ports
from services.cli.house.programs import Program, programs
from services.cli.house.supervision import configuration_of, restarts_of
from services.runtime.settings import ServiceSettings


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder.at(tmp_path / "house")
    made.make()
    return made


def test_keys_are_made_once_and_for_their_owner_only(folder: Folder):
    first = HouseKeys.load_or_make(folder)
    second = HouseKeys.load_or_make(folder)
    assert first.service_key == second.service_key
    assert first.sealing_keys == second.sealing_keys
    assert first.signing.key_id == second.signing.key_id
    assert first.sealing_keys != first.deck_keys
    for path in folder.keys.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_other_commands_need_a_house_that_was_started(tmp_path: Path):
    nowhere = Folder.at(tmp_path / "nowhere")
    with pytest.raises(FolderError, match="no house was started"):
        existing(nowhere)
    with pytest.raises(FolderError, match="no house was started"):
        nowhere.remembered_ports()


def test_a_folder_has_one_house_at_a_time(folder: Folder):
    with folder.held(), pytest.raises(FolderError, match="already running"), folder.held():
        pass
    with folder.held():
        pass


def test_a_long_path_gets_a_short_socket(tmp_path: Path):
    near = Folder(Path("/x"))
    assert near.supervisor_socket() == Path("/x/run/supervisor.sock")
    deep = Folder(tmp_path / ("d" * SOCKET_PATH_BYTES_MAX))
    assert len(str(deep.supervisor_socket())) <= SOCKET_PATH_BYTES_MAX
    assert deep.supervisor_socket() == deep.supervisor_socket()
    deep.supervisor_socket().parent.rmdir()


def test_ports_follow_from_the_base():
    ports = Ports(7400, table_replicas=3)
    assert (ports.tables, ports.deck, ports.wallet, ports.history) == ([7400, 7404, 7405], 7401, 7402, 7403)
    assert ports.metrics_of(ports.deck) == 7411
    assert ports.redis == 7420
    every = list(Ports(7400, table_replicas=6).all())
    assert len(every) == len(set(every))
    assert ports.console == 7421
    assert max(every) == 7431


@pytest.mark.parametrize(("base", "replicas"), [(80, 1), (65_530, 1), (7400, 0), (7400, 7)])
def test_ports_out_of_range_are_refused(base: int, replicas: int):
    with pytest.raises(ValueError, match=r"port base|replicas"):
        Ports(base, replicas)


def test_a_taken_port_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port in Ports(port - 2).taken()


def test_services_stop_before_what_they_need_and_redis_last(folder: Folder):
    house = programs(folder, HouseKeys.load_or_make(folder), Ports(7400, 2), log_level="info")
    priority = {program.name: program.priority for program in house}
    assert priority["redis"] < min(priority["wallet"], priority["deck"]) < priority["history"]
    assert priority["history"] < priority["worker"] < min(priority["table"], priority["table-2"]) < priority["beat"]


def test_each_service_gets_its_own_secrets_and_no_others(folder: Folder):
    keys = HouseKeys.load_or_make(folder)
    house = {program.name: program for program in programs(folder, keys, Ports(7400), log_level="info")}
    told = {
        name: {path.name.removeprefix("fivedraw_") for path in Path(found).iterdir()}
        for name, program in house.items()
        if (found := program.environment.get("FIVEDRAW_SECRETS_DIR"))
    }
    assert told["wallet"] == {"service_key"}
    assert told["deck"] == {"service_key", "sealing_keys"}
    assert told["table"] == {"service_key", "sealing_keys", "redis_url", "broker_url"}
    assert told["worker"] == {"service_key", "broker_url"}
    assert told["wallet-worker"] == {"broker_url"}
    deck = Path(house["deck"].environment["FIVEDRAW_SECRETS_DIR"], "fivedraw_sealing_keys").read_text()
    assert deck == keys.deck_keys
    for program in house.values():
        assert not any(keys.service_key in value for value in program.environment.values())


def test_the_settings_read_what_a_process_is_given(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    keys = HouseKeys.load_or_make(folder)
    house = {program.name: program for program in programs(folder, keys, Ports(7400), log_level="info")}
    for name, value in house["table"].environment.items():
        monkeypatch.setenv(name, value)
    settings = ServiceSettings.load()
    assert settings.listen == "127.0.0.1:7400"
    assert settings.wallet_address == "127.0.0.1:7402"
    assert settings.service_key.get_secret_value() == keys.service_key
    assert f":{keys.redis_password}@127.0.0.1:7420/0" in settings.redis_url.get_secret_value()


def test_deck_and_history_wait_for_the_same_time_before_an_auditor_sees_all(folder: Folder):
    keys = HouseKeys.load_or_make(folder)
    setting = "FIVEDRAW_DECK_SEED_DELAY_MS"
    for asked in (None, 0, 5_000):
        house = programs(folder, keys, Ports(7400), log_level="info", seed_delay_ms=asked)
        told = {each.environment.get(setting) for each in house if each.name in ("deck", "history")}
        assert told == {None if asked is None else str(asked)}, "without an order each keeps its day"


def test_the_configuration_is_one_that_the_process_manager_reads(folder: Folder):
    awkward = Program("awkward", ["/a path/python", "-m", "x"], 7, {"FIVEDRAW_X": "50%,of it"})
    read = configparser.RawConfigParser()
    read.read_string(configuration_of(folder, folder.run / "s.sock", [awkward]))
    section = read["program:awkward"]
    assert section["command"] == '"/a path/python" -m x'
    assert section["environment"] == 'FIVEDRAW_X="50%%,of it"'
    assert section["autorestart"] == "true"


def test_restarts_are_starts_beyond_the_first():
    assert restarts_of(["redis", "table", "table", "deck", "table"]) == {"table": 2}


def test_errors_in_logs_are_counted_once_and_from_now_on(folder: Folder):
    log = folder.logs / "table.log"
    log.write_text('{"level": "error", "event": "old"}\n')
    tail = ErrorTail(folder.logs)
    assert tail.look() == 0
    with log.open("a") as growing:
        growing.write('{"level": "info"}\n{"level": "error", "event": "new"}\n{"level": "err')
    assert tail.look() == 1
    with log.open("a") as growing:
        growing.write('or"}\n')
    assert tail.look() == 2
    assert tail.last[0].startswith("table: ")
