"""The project's own files agree: settings, lock, conda's environment, README."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from checking import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS = PROJECT["optional-dependencies"]


def locked() -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for line in LOCK.splitlines():
        if line.strip() and not line.startswith("#"):
            requirement = Requirement(line)
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def declared(*extras: str) -> list[Requirement]:
    lines = PROJECT["dependencies"] + [line for extra in extras for line in EXTRAS[extra]]
    return [Requirement(line) for line in lines if not line.startswith(PROJECT["name"])]


def conda() -> tuple[list[Requirement], list[str]]:
    """The packages that conda installs, by PyPI's names, and what pip adds."""
    *own, pip = CONDA["dependencies"]
    names = {"pytorch-cpu": "torch"}
    requirements = [Requirement(line) for line in own]
    for requirement in requirements:
        requirement.name = names.get(requirement.name, requirement.name)
    return requirements, pip["pip"]


def test_the_lock_pins_every_package_and_names_no_index() -> None:
    for requirements in locked().values():
        for requirement in requirements:
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            assert "+" not in specifier.version  # +cpu is not on every index
    for word in ("--hash", "--index-url", "--extra-index", "nvidia", "triton", "cuda-"):
        assert word not in LOCK


def test_the_lock_satisfies_the_settings() -> None:
    pins = locked()
    for requirement in declared("lab", "dev"):
        for pin in pins[canonicalize_name(requirement.name)]:
            (specifier,) = pin.specifier
            assert requirement.specifier.contains(specifier.version), str(requirement)


def test_condas_environment_agrees_with_the_settings_and_the_lock() -> None:
    own, pip = conda()
    by_name = {r.name: r.specifier for r in own + [Requirement(p) for p in pip if p[0] != "-"]}
    for requirement in declared("lab"):
        assert by_name[requirement.name] == requirement.specifier, requirement.name
    assert str(by_name["python"]) == PROJECT["requires-python"]
    for name in set(by_name) - {"python", "pip"}:
        for pin in locked()[name]:
            (specifier,) = pin.specifier
            assert by_name[name].contains(specifier.version)


def test_pip_pulls_no_second_torch_into_condas_environment() -> None:
    own, pip = conda()
    assert [r.name for r in own].count("torch") == 1
    assert "-e ." in pip
    assert not any(re.match(r"(py)?torch\b(?!-)", line) for line in pip)
    # Whatever `-e .` needs is there already, so pip has nothing to resolve.
    assert {r.name for r in declared()} <= {r.name for r in own}


def test_nothing_pins_torch_but_the_lock() -> None:
    assert [str(r.specifier) for r in declared() if r.name == "torch"] == [">=2.6"]


def test_the_readme_names_every_make_target_and_no_other() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    helped = set(re.findall(r'@echo "make (\w+) ', makefile)) | {"help"}
    assert helped == set(phony.split())
    assert set(re.findall(r"`make (\w+)`", README)) <= set(phony.split())
    assert {"book", "test"} <= set(re.findall(r"\bmake (\w+)\b", README))


def test_the_oldest_path_is_another_path_of_torchs_kernels() -> None:
    """A misspelt variable would make the second comparison a copy of the first."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^OLDEST := (.+)$", makefile, flags=re.MULTILINE)
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | dict(pair.split("=") for pair in line.split()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in ("DEFAULT", "NO AVX")


def tree_paths() -> list[str]:
    """The paths in the README's tree, as folders and files below the root."""
    (block,) = re.findall(r"```text\n(.+?)```", README, flags=re.DOTALL)
    found, folders = [], [""]
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip())[0].split()
        folders = folders[: depth + 1]
        found += [folders[-1] + name for name in names]
        folders.append(folders[-1] + names[0])
    return found


def test_the_tree_in_the_readme_is_the_tree() -> None:
    paths = tree_paths()
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert missing == []
    shown = {path.rstrip("/") for path in paths}
    for folder in ("companion", "tools", "tests", "book/text", "book/extensions"):
        for path in sorted((ROOT / folder).glob("*")):
            hidden = path.name.startswith(("_", ".")) or path.name == "py.typed"
            assert hidden or path.relative_to(ROOT).as_posix() in shown, path


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_the_projects_own_files_resolve(path: str) -> None:
    text = re.sub(r"`[^`\n]+`", "", (ROOT / path).read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert Path(ROOT / target).exists(), f"{path} links to {target}"
