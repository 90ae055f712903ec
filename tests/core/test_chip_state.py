"""Whether there is a chip to run on, and why not: on machines that have what each test needs, none of them real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import mtfcore as mtf
from mtfcore import device_pool, platforms
from mtfcore.diagnosis import doctor
from mtfcore.machine import Machine
from mtfcore.measuring.chip_state import ChipState, chip_state

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of other processes, and has TPUs")
FITTING = {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.52"}
JAX_ASKS = ["jaxlib<=0.10.2,>=0.10.1", "libtpu==0.0.42.*; extra == 'tpu'", "requests; extra == 'tpu'"]
LOCK = (
    "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('locked', flush=True); input()"
)


class Fake(Machine):
    """A machine whose packages a test chooses."""

    installed: dict[str, str]
    writable: bool

    def version(self, package: str) -> str | None:
        return self.installed.get(package)

    def requires(self, package: str) -> list[str]:
        return JAX_ASKS if package == "jax" else []

    def may_write(self, path: Path) -> bool:
        return self.writable


@pytest.fixture
def machine(tmp_path: Path) -> Fake:
    (tmp_path / "vfio").mkdir()
    fake = Fake(modules={}, device_files=tmp_path, tpu_lock=tmp_path / "libtpu_lockfile", environment={})
    fake.installed, fake.writable = dict(FITTING), True
    return fake


def with_files(machine: Fake, *names: str) -> Fake:
    for name in names:
        (machine.device_files / name).touch()
    return machine


def chips(number: int, kind: str = "TPU v4") -> list[SimpleNamespace]:
    return [SimpleNamespace(device_kind=kind, platform="tpu")] * number


def check(state: ChipState, kind: str, *said: str) -> None:
    assert state.kind == kind and state.ready == (kind == "ready")
    for words in said:
        assert words in str(state)


def test_none(machine):
    check(
        chip_state(machine=machine), "none", "no TPU or GPU is attached (no device file of one is here); mtf.simulate"
    )
    check(chip_state(found=[], machine=machine), "none", "no TPU or GPU is attached (JAX sees only the CPU)")


def test_ready_before_and_after_jax_has_started(machine):
    with_files(machine, "accel0", "accel1")
    before, after = chip_state("x:8", machine=machine), chip_state(4, chips(4), machine)
    check(before, "ready", "2 TPU device files here; JAX has not started")
    assert (before.devices, before.chip, before.fix) == (2, "TPU", "")
    check(after, "ready", "attached: 4 x TPU v4")
    assert (after.devices, after.chip) == (4, "TPU v4")


def test_jax_that_has_started_is_asked(machine):
    def refuse(name: str, value: int) -> None:
        raise RuntimeError(name)

    config = SimpleNamespace(jax_num_cpu_devices=1, update=refuse)
    machine.modules["jax"] = SimpleNamespace(devices=lambda: chips(2), config=config)
    check(chip_state(3, machine=machine), "fewer", "3 devices are needed; attached: 2 x TPU v4")


def test_fewer_than_the_mesh_needs(machine):
    state = chip_state(mtf.Mesh("x:4 y:2"), chips(4), machine)
    check(state, "fewer", "mesh 'x:4 y:2' needs 8 devices; attached: 4 x TPU v4; choose a mesh of at most 4")
    assert "one device's share" in state.fix and chip_state("x:4 y:2", chips(4), machine) == state
    with pytest.raises(mtf.DeviceError, match="needs 8 devices"):
        state.expect_ready()


# ---- held by another process ------------------------------------------------------------------------------------


@pytest.fixture
def start():
    """Starts processes that stand for another's program, and ends those."""
    started: list[subprocess.Popen] = []

    def start_one(*command: str, **options: object) -> subprocess.Popen:
        started.append(subprocess.Popen(command, **options))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


@linux
@pytest.mark.parametrize("file", ["accel0", "vfio/0"])
def test_another_process_has_the_device_file_open(machine, start, file):
    with_files(machine, file)
    with (machine.device_files / file).open() as opened:
        check(chip_state(machine=machine), "ready")  # it is open here: not another process
        other = start("sleep", "60", stdin=opened)
        state = chip_state(machine=machine)
    check(state, "held", f"the TPU is held by another process, process {other.pid} (sleep 60); only one can")
    assert f"kill {other.pid}" in state.fix and "restart" not in state.fix
    check(chip_state(found=[], machine=machine), "held", "then restart the kernel, since JAX looks once")
    other.kill()
    other.wait()
    check(chip_state(machine=machine), "ready")


@linux
def test_another_process_has_the_lock_of_libtpu(machine, start):
    with_files(machine, "accel0")
    other = start(sys.executable, "-S", "-c", LOCK, str(machine.tpu_lock), stdin=-1, stdout=-1)
    assert other.stdout.readline() == b"locked\n"
    check(chip_state(machine=machine), "held", f"process {other.pid} (")
    other.kill()
    other.wait()
    check(chip_state(machine=machine), "ready")  # the file is still there, and nobody has a lock on it


def test_a_process_of_another_user_is_known_by_its_lock_alone(machine, tmp_path):
    """Linux shows nobody what another user's process has open, and to a container not even its command."""
    with_files(machine, "accel0", "libtpu_lockfile")
    machine.processes = tmp_path / "proc"
    machine.processes.mkdir()
    inode = machine.tpu_lock.stat().st_ino
    locks = f"1: POSIX  ADVISORY  WRITE 4711 08:01:{inode} 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 08:01:{inode}1 0 EOF\n"
    (machine.processes / "locks").write_text(locks)
    check(chip_state(machine=machine), "held", "held by another process, process 4711; only one can; shut")
    machine.process = 4711
    check(chip_state(machine=machine), "ready")


def test_a_lock_file_that_another_user_left_behind(machine):
    with_files(machine, "accel0", "libtpu_lockfile")
    machine.writable = False
    check(chip_state(machine=machine), "held", "another user's", f"sudo rm {machine.tpu_lock}")


@pytest.mark.parametrize("said", ["tpu,cpu", None, ""])  # what JAX says of itself on a TPU's computer, or nothing
def test_a_held_tpu_is_left_out_so_that_jax_can_simulate(machine, said):
    with_files(machine, "accel0", "libtpu_lockfile")
    config = SimpleNamespace(jax_platforms=said, update=lambda name, value: setattr(config, name, value))
    assert not platforms.leave_out_held(config, {}, machine) and config.jax_platforms == said
    machine.writable = False
    assert not platforms.leave_out_held(config, {"JAX_PLATFORMS": "tpu"}, machine) and config.jax_platforms == said
    assert platforms.leave_out_held(config, {}, machine) and config.jax_platforms == "cpu"


# ---- software that does not reach it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"libtpu": None}, r"libtpu, through which JAX reaches it, is not installed; pip install 'jax[tpu]==0.10.2'"),
        ({"libtpu": "0.0.41"}, "libtpu 0.0.41 is older than 0.0.42, with which jax 0.10.2 was made; pip install"),
        ({"jaxlib": "0.10.3"}, "jaxlib 0.10.3 does not fit jax 0.10.2; pip install 'jax==0.10.2' 'jaxlib==0.10.2'"),
        ({"jaxlib": "0.9.1"}, "jaxlib 0.9.1 does not fit jax 0.10.2"),
        ({"jaxlib": None}, "jaxlib, the half of jax 0.10.2 that runs, is missing"),
        ({"jax": None}, "a TPU is here, but JAX is missing"),
    ],
)
def test_wrong_versions_for_a_tpu(machine, wrong, said):
    with_files(machine, "accel0")
    machine.installed |= wrong
    check(chip_state(machine=machine), "version", said)


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({}, "an NVIDIA GPU's driver is here, but JAX has no plugin for it; pip install 'jax[cuda12]==0.10.2'"),
        (
            {"jax-cuda12-plugin": "0.9.1", "jax-cuda12-pjrt": "0.9.1"},
            "jax-cuda12-plugin is 0.9.1, jax-cuda12-pjrt 0.9.1,",
        ),
        ({"jax-cuda13-plugin": "0.10.2"}, "jax-cuda13-pjrt missing, jaxlib 0.10.2: JAX leaves out"),
    ],
)
def test_wrong_plugins_for_a_gpu(machine, installed, said):
    with_files(machine, "nvidia0", "nvidiactl")
    machine.installed |= installed
    check(chip_state(machine=machine), "version", said)


@pytest.mark.parametrize("name", ["jax-cuda12", "jax-cuda13"])
def test_a_gpu_with_its_plugin(machine, name):
    with_files(machine, "nvidia0", "nvidia1", "nvidiactl")
    machine.installed |= {f"{name}-plugin": "0.10.2", f"{name}-pjrt": "0.10.2"}
    state = chip_state(machine=machine)
    check(state, "ready", "2 NVIDIA GPU device files here")
    check(chip_state(found=[], machine=machine), "version", "JAX started without it", "JAX_PLATFORMS=cuda python -c")


def test_jax_that_was_told_to_leave_it_out(machine):
    with_files(machine, "accel0")
    machine.environment = {"JAX_PLATFORMS": "cpu"}
    check(chip_state(machine=machine), "none", "no TPU or GPU is attached to JAX: JAX_PLATFORMS is 'cpu'", "unset")
    machine.environment = {"JAX_PLATFORMS": "tpu,cpu"}
    check(chip_state(machine=machine), "ready")


# ---- who uses it -----------------------------------------------------------------------------------------------------


@mtf.function
def keep(x: "A B"):
    return x + x


@pytest.mark.parametrize("kind", ["held", "version"])
def test_attach_refuses_in_its_words_before_jax_starts(monkeypatch, kind):
    monkeypatch.setattr(
        "mtfcore.measuring.chip_state.chip_state", lambda *_, **__: ChipState(kind, "so it is", "do this")
    )
    monkeypatch.setattr(device_pool, "attached_devices", lambda: pytest.fail("JAX was started"))
    program = mtf.plan(keep, "x:2", "A:x", sizes="A:2 B:4")
    with pytest.raises(mtf.DeviceError, match=r"^so it is; do this$"):
        mtf.attach(program)
    assert "so it is; do this" in repr(device_pool.Devices(64, []))


def test_jax_that_cannot_start_is_told(monkeypatch):
    def fail(platform: str | None = None) -> None:
        raise RuntimeError("Unable to initialize backend 'tpu'")

    monkeypatch.setattr("jax.devices", fail)
    with pytest.raises(
        mtf.DeviceError, match=r"could not start its devices: Unable .* Here: no TPU .* JAX_PLATFORMS=cpu"
    ):
        mtf.devices(64)


def test_the_doctor_shows_it(machine):
    def row():
        (found,) = (row for row in doctor(machine).rows if row.what == "accelerators")
        return found

    assert row().state == "ok"
    with_files(machine, "accel0", "libtpu_lockfile")
    assert (row().state, row().found) == ("ok", "1 TPU: 1 TPU device file here; JAX has not started")
    machine.writable = False
    assert (
        row().state == "warn" and row().found.startswith("1 TPU: another user's") and row().fix.startswith("Remove it")
    )


def test_asking_loads_no_jax():
    code = "import sys; from mtfcore.measuring.chip_state import chip_state; chip_state(4); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr
