"""What is packaged: the kit for users' own tests is, the simulation of Interlock itself is not."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
KIT = {
    "__init__", "fake_agent",
    "immortal", "interruptions", "out_of_bounds", "replay", "simulated_backends",
    "simulated_ports", "simulated_task", "site", "virtual_loop", "virtual_run",
}  # fmt: skip


def packaged() -> set[Path]:
    """The files that the wheel would have, relative to it."""
    return {
        Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_project_files()
    }


def test_the_wheel_has_the_testing_kit_and_nothing_else_for_tests() -> None:
    testing = {path for path in packaged() if path.parts[:2] == ("interlock", "testing")}
    assert {path.stem for path in testing} == KIT
    assert all(len(path.parts) == 3 for path in testing)


def test_the_wheel_has_neither_judges_nor_planted_bugs() -> None:
    simulation = {path.stem for path in (ROOT / "tests" / "simulation").rglob("*.py")}
    assert {"oracle", "judge", "planted"} <= simulation
    files = packaged()
    assert files
    assert all(path.parts[0] == "interlock" for path in files)
    words = ("oracle", "judge", "planted", "storyteller")
    assert not [path for path in files if any(word in path.name for word in words)]
    assert not [
        path
        for path in files
        if path.suffix == ".py" and "tests.simulation" in (ROOT / "src" / path).read_text()
    ]
