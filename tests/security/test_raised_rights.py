# SPDX-License-Identifier: MIT
"""A user starts a program that has more rights, in an environment that would have it run the user's own code."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def raised(world, way):
    """A copy of the command that may do more than who starts it, or a reason why there can be none here."""
    binary = world.base / f"tilewise-{way}"
    if os.statvfs(world.base).f_flag & os.ST_NOSUID:
        pytest.skip(f"{world.base} is mounted with nosuid")
    if not binary.exists():
        shutil.copy(world.binary, binary)
        os.chown(binary, world.VICTIM, world.VICTIM)
        binary.chmod({"setuid": 0o4755, "setgid": 0o2755, "capabilities": 0o755}[way])
        if way == "capabilities":
            if not shutil.which("setcap"):
                pytest.skip("there is no setcap")
            subprocess.run(["setcap", "cap_net_raw+ep", binary], check=True)
    return binary


def attackers_environment(world):
    evil = world.evil
    return {"HOME": evil, "PATH": f"{evil}/bin:/usr/bin:/bin", "COMPILER_PATH": evil / "bin", "GCC_EXEC_PREFIX": f"{evil}/bin/",
            "LD_PRELOAD": evil / "code.so", "LD_LIBRARY_PATH": evil, "TMPDIR": evil, "TILEWISE_CXX": evil / "bin/g++",
            "TILEWISE_NVRTC": evil / "code.so", "TILEWISE_PACKS": evil / "evil.pack", "TILEWISE_CACHE_DIR": evil / "poisoned",
            "XDG_CACHE_HOME": evil, "VIRTUAL_ENV": evil, "TILEWISE_ARCH_FILE": evil / "arch.json"}


@pytest.fixture(scope="module")
def prepared(shared_world):
    """The files that the variables of attackers_environment() name."""
    world = shared_world
    poisoned = world.copy_of_cache(world.evil / "poisoned", world.ATTACKER)
    world.poison(poisoned, world.ATTACKER)
    arch = json.loads((ROOT / "arch/cpu-generic.json").read_text())
    (world.evil / "arch.json").write_text(json.dumps({**arch, "name": "cpu-evil"}))
    return attackers_environment(world)


@pytest.mark.parametrize("way", ["setuid", "setgid", "capabilities"])
def test_with_raised_rights_the_environment_chooses_no_code(world, prepared, way):
    binary = raised(world, way)
    done = world.run(*world.RUN, user=world.ATTACKER, env=prepared, binary=binary)
    assert done.returncode == 0 and json.loads(done.stdout)["plan"]["origin"] == "builtin", done
    archs = world.run("arch", "--json", user=world.ATTACKER, env={**prepared, "LD_PRELOAD": ""}, binary=binary)
    assert archs.returncode == 0 and "cpu-evil" not in archs.stdout, archs
    done = world.run(*world.COMPILED, user=world.ATTACKER, env=prepared, binary=binary)
    if way == "setuid":
        assert done.returncode == 0 and json.loads(done.stdout)["plan"]["origin"] == "private", done
    else:  # what it writes is the attacker's own, who could exchange it
        assert done.returncode == 4 and f"belong to user {world.ATTACKER}" in done.stderr, done
    world.assert_nothing_ran()


def test_with_raised_rights_no_variable_is_used(world, prepared):
    """The doctor also looks for both compilers. No variable names a cache, so that there is none that can be written."""
    done = world.run("doctor", user=world.ATTACKER, env={**prepared, "LD_PRELOAD": ""}, binary=raised(world, "setuid"))
    assert done.returncode == 1 and os.fspath(world.evil) not in done.stdout, done
    world.assert_nothing_ran()


@pytest.mark.parametrize("way", ["setgid", "capabilities"])
def test_with_a_groups_rights_files_of_who_started_it_are_not_trusted(world, way):
    done = world.run(*world.RUN, "--pack", world.evil / "evil.pack", user=world.ATTACKER, env={"HOME": ""}, binary=raised(world, way))
    assert done.returncode == 4 and f"belongs to user {world.ATTACKER}, not to root;" in done.stderr, done
    world.assert_nothing_ran()


def test_without_raised_rights_the_environment_is_the_users(world, prepared):
    """So the variables above would have worked."""
    archs = world.run("arch", "--json", user=world.ATTACKER, env={**prepared, "LD_PRELOAD": ""})
    assert "cpu-evil" in archs.stdout, archs
    world.run(*world.RUN, user=world.ATTACKER, env={**prepared, "TILEWISE_PACKS": "", "LD_PRELOAD": ""})
    assert os.listdir(world.loot) == ["code"]


def test_with_raised_rights_python_loads_its_own_library(world):
    system = pathlib.Path("/usr/bin/python3")
    if not system.exists() or os.statvfs(world.base).f_flag & os.ST_NOSUID:
        pytest.skip("no Python of the system that could be given rights")
    site = world.base / "site"
    shutil.copytree(ROOT / "python/tilewise", site / "tilewise", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "tilewise/lib").mkdir()
    shutil.copy(ROOT / "build/lib/libtilewise.so", site / "tilewise/lib")
    python = world.base / "python3"
    shutil.copy(system, python)
    os.chown(python, 0, world.VICTIM)
    python.chmod(0o2755)
    code = f"import sys; sys.path.insert(0, {os.fspath(site)!r}); import tilewise; print(tilewise.__version__)"
    done = world.run("-c", code, user=world.ATTACKER, binary=python,
                     env={"TILEWISE_LIBRARY": world.evil / "code.so", "PYTHONHOME": "/usr"})
    assert done.returncode == 0 and done.stdout.strip(), done
    world.assert_nothing_ran()


@pytest.mark.parametrize("way", ["setuid", "setgid", "capabilities"])
def test_with_raised_rights_no_verb_is_started(world, prepared, way):
    """Neither one on PATH nor one that lies beside the command."""
    binary = raised(world, way)
    (world.evil / "bin").mkdir(exist_ok=True)
    evil = world.evil / "bin" / "tilewise-crawl"
    evil.write_text(f"#!/bin/sh\ntouch {world.evil}/started\n")
    evil.chmod(0o755)
    done = world.run("crawl", "model.onnx", user=world.ATTACKER, env={**prepared, "LD_PRELOAD": ""}, binary=binary)
    assert done.returncode == 2 and "raised rights" in done.stderr, done
    assert not (world.evil / "started").exists()
