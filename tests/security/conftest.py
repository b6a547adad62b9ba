# SPDX-License-Identifier: MIT
"""Two users of one machine: what they have, and how each runs the command. Needs root, to be both; they have numbers but no
accounts. Code of the attacker leaves a file in `loot` when it runs.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 30

EXCHANGE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** paths) {
    alarm(60);
    while (count == 3) renameat2(AT_FDCWD, paths[1], AT_FDCWD, paths[2], RENAME_EXCHANGE), usleep(30);
    return 1;
}
"""


class World:
    """A folder that both can reach, with what each of them has."""

    ROOT, VICTIM, ATTACKER = 0, 64001, 64002
    RACES = int(os.environ.get("TILEWISE_TEST_RACES", "12"))  # runs to win against an attacker who exchanges folders

    GEMM = "gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr"
    # Kernels that are built in are unpacked, not compiled.
    RUN = ("run", GEMM, "--arch", "cpu-generic", "--rule-set", "builtin", "--threads", "1", "--json")
    TUNE = ("tune", GEMM, "--arch", "cpu-generic", "--rule-set", "builtin", "--threads", "1", "--top", "1", "--json")
    COMPILED = ("run", GEMM, "--arch", "cpu-generic", "--threads", "1", "--json", "--kernel",
                "gemm_fp32_any_mem_default_intrawave_96x256x256_2x1x1_4x8x1@cpu-generic")

    def __init__(self, base):
        self.base = base
        self.binary = base / "tilewise"
        self.loot = self.folder("loot", self.ATTACKER, 0o777)
        self.evil = self.folder("evil", self.ATTACKER, 0o755)
        self.home = self.folder("home", self.VICTIM, 0o700)
        self.precious = self.file("home/precious", self.VICTIM, "mine\n")

    def folder(self, name, owner, mode):
        path = self.base / name
        path.mkdir()
        path.chmod(mode)
        os.chown(path, owner, owner)
        return path

    def file(self, name, owner, text, mode=0o644):
        path = self.base / name
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, owner, owner)
        return path

    def run(self, *words, user=VICTIM, env=None, binary=None, **options):
        clean = {"PATH": os.environ["PATH"], "HOME": os.fspath(self.home)}
        clean |= {key: os.fspath(value) for key, value in (env or {}).items()}
        return subprocess.run([binary or self.binary, *words], user=user, group=user, extra_groups=[],
                              env={key: value for key, value in clean.items() if value}, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_SECONDS, **options)

    def give(self, tree, owner):
        for path in [tree, *tree.rglob("*")]:
            os.chown(path, owner, owner, follow_symlinks=False)

    def copy_of_cache(self, path, owner):
        shutil.copytree(self.home / "cache", path, symlinks=True)
        self.give(path, owner)
        return path

    def poison(self, cache, owner):
        """The attacker's code in the place of the one kernel of a copy of the victim's cache, with a manifest to match."""
        (kernel,) = cache.glob("v1/*/*/kernel.so")
        self.exchange_code(kernel)
        self.give(cache, owner)
        return kernel

    def exchange_code(self, kernel):
        code = (self.evil / "code.so").read_bytes()
        kernel.write_bytes(code)
        manifest = json.loads((kernel.parent / "manifest.json").read_text())
        manifest |= {"size": len(code), "sha256": hashlib.sha256(code).hexdigest()}
        (kernel.parent / "manifest.json").write_text(json.dumps(manifest))

    def assert_nothing_ran(self):
        assert os.listdir(self.loot) == [], "the attacker's code ran"


def make_evil_code(world):
    source = world.evil / "code.c"
    source.write_text("#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void run(void) { "
                      f'close(open("{world.loot}/code", O_CREAT | O_WRONLY, 0600)); }}\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", world.evil / "code.so", source], check=True)
    (world.evil / "exchange.c").write_text(EXCHANGE)
    subprocess.run(["cc", "-o", world.base / "exchange", world.evil / "exchange.c"], check=True)
    tools = world.evil / "bin"
    tools.mkdir()
    for name in ("c++", "g++", "clang++", "as", "ld", "cc1plus", "collect2"):  # each does what it should, too
        (tools / name).write_text(f"#!/bin/sh\n: > {world.loot}/{name}\nPATH=/usr/bin:/bin exec {name} \"$@\"\n")
        (tools / name).chmod(0o755)


def make_evil_pack(world):
    """A pack of the kernels that are built in, every one with the attacker's code: made from a cache that has it."""
    words = ("build", "--arch", "cpu-generic", "--rule-set", "builtin", "--op", "gemm", "--dtype", "fp32", "--pack",
             world.evil / "evil.pack")
    env = {"HOME": "", "TILEWISE_CACHE_DIR": world.evil / "cache"}
    done = world.run(*words, user=world.ATTACKER, env=env)
    assert done.returncode == 0, done
    good = (world.evil / "evil.pack").read_bytes()
    for kernel in (world.evil / "cache").glob("v1/*/*/kernel.so"):
        world.exchange_code(kernel)
    done = world.run(*words, user=world.ATTACKER, env=env)
    assert done.returncode == 0 and (world.evil / "evil.pack").read_bytes() != good, done


@pytest.fixture(scope="session")
def base():
    if os.geteuid() != 0:
        pytest.skip("only root can act as two users")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tilewise-two-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def shared_world(base):
    world = World(base)
    shutil.copy(ROOT / "build/bin/tilewise", world.binary)
    world.binary.chmod(0o755)
    make_evil_code(world)
    world.give(world.evil, world.ATTACKER)
    make_evil_pack(world)
    world.give(world.evil, world.ATTACKER)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": world.home / "cache"})
    assert done.returncode == 0, done
    return world


@pytest.fixture
def world(shared_world):
    """With `shared`, where everybody may write as in /tmp, and `open`, where everybody may even rename what is another's."""
    world = shared_world
    world.shared = world.folder("shared", 0, 0o1777)
    world.open = world.folder("open", 0, 0o777)
    yield world
    for path in (world.shared, world.open, *world.loot.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert world.precious.read_text() == "mine\n"
