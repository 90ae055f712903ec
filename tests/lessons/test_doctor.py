"""`mtf.doctor()` on machines that are well, and on machines with one thing wrong each."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mtfcore.diagnosis import GIB, LAB_EXTENSIONS, doctor
from mtfcore.errors import LayoutError
from mtfcore.machine import Machine

PINS = {"jax": "0.10.2", "ipywidgets": "8.1.9", "anywidget": "0.11.0"}


class Fake(Machine):
    """A machine whose packages, memory and folders a test chooses."""

    installed: dict
    pins: list | None
    memory: tuple | None

    def version(self, package):
        return self.installed.get(package)

    def requirements(self):
        return self.pins

    def free_memory(self):
        return self.memory


@pytest.fixture
def machine(tmp_path):
    for name in LAB_EXTENSIONS:
        folder = tmp_path / "share" / "labextensions" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"version": "5.0.0"}))
    shell = SimpleNamespace(kernel=SimpleNamespace(comm_manager=object()))
    fake = Fake(
        python=(3, 12), modules={"IPython": SimpleNamespace(get_ipython=lambda: shell)},
        jupyter_data=(tmp_path / "share",), jupyter_config=(tmp_path / "etc",), device_files=tmp_path / "dev",
    )  # fmt: skip
    fake.installed = {**PINS, "ipykernel": "7.4.0"}
    fake.pins = [f"{name}=={version}" for name, version in PINS.items()] + [
        "pytest==9.0.0; extra == 'test'", "old==1.0 ; python_version < '3.12'", "numpy>=2",
    ]  # fmt: skip
    fake.memory = (8 * GIB, 16 * GIB)
    return fake


def row(machine, what):
    (found,) = (row for row in doctor(machine).rows if row.what == what)
    return found


def test_a_well_machine_needs_nothing(machine):
    report = doctor(machine)
    assert report.good and {row.state for row in report.rows} == {"ok"}
    assert not any(row.fix for row in report.rows)
    assert "Everything that the lessons need is here." in repr(report)


def test_a_missing_package_is_named_with_its_pin(machine):
    del machine.installed["anywidget"]
    report = doctor(machine)
    assert not report.good and report.verdict == "To fix first: anywidget."
    assert row(machine, "anywidget").fix.startswith("Install anywidget 0.11.0: run `make lab`")


def test_another_version_is_a_note(machine):
    machine.installed["jax"] = "0.9.0"
    assert row(machine, "jax").found == "0.9.0, pinned is 0.10.2" and doctor(machine).good
    assert row(machine, "packages").found == "2 of 3 pinned packages at their pinned version"


def test_extras_of_developers_are_not_asked_of_students(machine):
    assert "pytest" not in repr(doctor(machine))


def test_pins_of_another_python_are_not_asked_of_this_one(machine):
    assert " old " not in repr(doctor(machine))
    machine.python = (3, 11)
    assert row(machine, "old").found == "missing"


def test_without_the_reader_of_pins(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    assert row(machine, "packages").state == "fix"


def test_without_metadata_the_pins_are_unknown(machine):
    machine.pins = None
    assert row(machine, "packages").state == "warn"


def test_old_python_is_to_be_fixed(machine):
    machine.python = (3, 10)
    assert row(machine, "Python").state == "fix" and "3.11" in row(machine, "Python").fix


@pytest.mark.parametrize("name", LAB_EXTENSIONS)
def test_a_front_end_that_is_missing_or_damaged(machine, name):
    package = machine.jupyter_data[0] / "labextensions" / name / "package.json"
    package.write_text("{")
    assert row(machine, f"front end: {name}").state == "fix"
    package.unlink()
    assert row(machine, f"front end: {name}").found == "not installed"


@pytest.mark.parametrize("listed", [["anywidget"], {"anywidget": True}])
def test_a_front_end_that_a_setting_turns_off(machine, listed):
    page = machine.jupyter_config[0] / "labconfig" / "page_config.json"
    page.parent.mkdir(parents=True)
    page.write_text(json.dumps({"disabledExtensions": listed}))
    assert "jupyter labextension enable anywidget" in row(machine, "front end: anywidget").fix


def test_outside_a_kernel(machine):
    machine.modules.clear()
    assert row(machine, "kernel").state == row(machine, "widgets").state == "warn"


def test_without_ipywidgets_or_jax(machine):
    machine.installed.clear()
    assert row(machine, "widgets").state == row(machine, "devices").state == "fix"


def jax_with(devices, started):
    """A stand-in for JAX: like the real one, it refuses another number of devices once they have started."""

    def update(name, value):
        if started:
            raise RuntimeError(f"{name} must be set before the devices start")
        setattr(config, name, value)

    config = SimpleNamespace(jax_num_cpu_devices=-1, update=update)
    return SimpleNamespace(devices=devices, config=config)


def test_devices_are_not_started_to_be_counted(machine):
    machine.modules["jax"] = jax = jax_with(lambda: pytest.fail("JAX was started"), started=False)
    assert "JAX has not started" in row(machine, "devices").found and jax.config.jax_num_cpu_devices == -1


@pytest.mark.parametrize(("before", "expected"), [("", "False False"), ("jax.devices()", "True True")])
def test_the_real_jax_answers_whether_it_has_started(before, expected):
    code = f"import jax; from mtfcore.device_pool import started\n{before}\nprint(started(jax), started(jax))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize(("count", "platform", "state"), [(64, "cpu", "ok"), (8, "cpu", "warn"), (4, "tpu", "ok")])
def test_devices_that_are_there(machine, count, platform, state):
    device = SimpleNamespace(platform=platform, device_kind="kind")
    machine.modules["jax"] = jax_with(lambda: [device] * count, started=True)
    found = row(machine, "devices")
    assert found.state == state and str(count) in found.found
    assert ("simulated" in found.found) == (platform == "cpu")


def test_attached_accelerators_are_seen_by_their_files(machine):
    (machine.device_files / "vfio").mkdir(parents=True)
    for name in ("accel0", "accel1", "nvidia0", "nvidiactl", "vfio/vfio"):
        (machine.device_files / name).touch()
    assert row(machine, "accelerators").found.startswith("2 TPU, 1 NVIDIA GPU: ")


@pytest.mark.parametrize(("memory", "state"), [((GIB, 8 * GIB), "warn"), (None, "warn"), ((4 * GIB, 8 * GIB), "ok")])
def test_memory(machine, memory, state):
    machine.memory = memory
    assert row(machine, "memory").state == state


def test_the_table_escapes_what_it_found(machine):
    machine.installed["jax"] = "<script>"
    assert "<script>" not in doctor(machine)._repr_html_()


def test_the_real_machine_is_looked_at_without_starting_jax():
    code = "import mtfcore as mtf, sys; print(mtf.doctor()); print('JAX loaded:', 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "front end: anywidget" in done.stdout and "JAX loaded: False" in done.stdout, done.stderr


def test_what_is_no_machine_is_refused():
    with pytest.raises(LayoutError, match="expected a Machine, or nothing for this computer, got object"):
        doctor(object())
