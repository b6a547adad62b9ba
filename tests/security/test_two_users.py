# SPDX-License-Identifier: MIT
"""One user attacks another on the same machine: plants caches, packs, tuning files, links and FIFOs before and after the
other's first run, and exchanges folders under a run.
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

LIMIT_SECONDS = 30


def test_the_traps_work(world):
    """Else nothing below would prove anything."""
    cache = world.copy_of_cache(world.shared / "cache", world.VICTIM)
    world.poison(cache, world.VICTIM)
    world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert os.listdir(world.loot) == ["code"]
    (world.loot / "code").unlink()
    pack = shutil.copy(world.evil / "evil.pack", world.home)
    os.chown(pack, world.VICTIM, world.VICTIM)
    world.run(*world.RUN, "--pack", pack, env={"TILEWISE_CACHE_DIR": world.shared / "fresh"})
    assert os.listdir(world.loot) == ["code"]
    (world.loot / "code").unlink()
    done = world.run(*world.COMPILED, env={"HOME": "", "PATH": f"{world.evil}/bin:/usr/bin:/bin"})
    assert done.returncode == 0 and len(os.listdir(world.loot)) >= 1, done


# ---- the cache -------------------------------------------------------------------------------------------------------


def test_a_planted_cache_is_refused(world):
    cache = world.copy_of_cache(world.shared / "cache", world.ATTACKER)
    world.poison(cache, world.ATTACKER)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 2 and f"belongs to user {world.ATTACKER}" in done.stderr, done
    link = world.shared / "link"
    link.symlink_to(world.home)
    os.chown(link, world.ATTACKER, world.ATTACKER, follow_symlinks=False)
    before = sorted(world.home.iterdir())
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": link})
    assert done.returncode == 2 and f"link of user {world.ATTACKER}" in done.stderr, done
    assert sorted(world.home.iterdir()) == before
    world.assert_nothing_ran()


@pytest.mark.parametrize("name", ["v1", "tmp", "locks", "failed", "libraries"])
def test_folders_planted_in_a_sticky_cache_are_refused(world, name):
    cache = world.shared / "cache"
    cache.mkdir()
    cache.chmod(0o1777)
    os.chown(cache, world.VICTIM, world.VICTIM)
    twin = world.copy_of_cache(world.evil / "twin", world.ATTACKER)
    world.poison(twin, world.ATTACKER)
    (twin / name).mkdir(exist_ok=True)
    world.give(twin, world.ATTACKER)
    shutil.move(twin / name, cache / name)
    shutil.rmtree(twin)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 2 and f"{cache / name}' belongs to user {world.ATTACKER}" in done.stderr, done
    world.assert_nothing_ran()


def test_a_shard_that_others_may_write_is_refused(world):
    cache = world.copy_of_cache(world.shared / "cache", world.VICTIM)
    (entry,) = cache.glob("v1/*/*")
    entry.parent.chmod(0o777)
    kernel = world.poison(cache, world.VICTIM)
    world.give(entry, world.ATTACKER)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 2 and f"chmod go-w '{entry.parent}'" in done.stderr, done
    # The files may be the victim's own all the same: the attacker renames what lies elsewhere.
    world.give(entry, world.VICTIM)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 2 and kernel.exists(), done
    world.assert_nothing_ran()


@pytest.mark.parametrize("part", [".", "kernel.so", "manifest.json"])
def test_an_entry_that_others_may_write_is_replaced(world, part):
    cache = world.copy_of_cache(world.shared / "cache", world.VICTIM)
    kernel = world.poison(cache, world.VICTIM)
    (kernel.parent / part).chmod(0o777)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 0 and json.loads(done.stdout)["plan"]["origin"] == "builtin", done
    assert (cache / kernel.relative_to(cache)).read_bytes() != (world.evil / "code.so").read_bytes()
    world.assert_nothing_ran()


@pytest.mark.parametrize("kernel, origins", [("loaded", {"cache", "builtin"}), ("compiled", {"built", "cache", "private"})])
def test_folders_that_are_exchanged_under_a_run(world, kernel, origins):
    """The folder above is everybody's, so that the attacker puts a cache of its own in the place of the victim's and takes
    it away again, thousands of times a second. Where that is seen the cache is refused; otherwise the answer is right."""
    cache = world.copy_of_cache(world.open / "cache", world.VICTIM)
    twin = world.copy_of_cache(world.open / "twin", world.ATTACKER)
    world.poison(twin, world.ATTACKER)
    for path in (twin, *twin.rglob("*")):
        path.chmod(0o777)
    attack = subprocess.Popen([world.base / "exchange", cache, twin], user=world.ATTACKER, group=world.ATTACKER, extra_groups=[])
    try:
        for _ in range(world.RACES if kernel == "loaded" else 1):
            done = world.run(*(world.RUN if kernel == "loaded" else world.COMPILED), env={"TILEWISE_CACHE_DIR": cache})
            if done.returncode == 0:
                assert json.loads(done.stdout)["plan"]["origin"] in origins, done
        assert attack.poll() is None
    finally:
        attack.kill()
        attack.wait()
    world.assert_nothing_ran()


# ---- packs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner, mode, told", [("ATTACKER", 0o644, "belongs to user"), ("VICTIM", 0o664, "chmod go-w"),
                                               ("VICTIM", 0o646, "chmod go-w"), ("ROOT", 0o666, "chmod go-w")])
@pytest.mark.parametrize("way", ["option", "environment"])
def test_a_pack_that_others_may_have_written_is_refused(world, owner, mode, told, way):
    pack = pathlib.Path(shutil.copy(world.evil / "evil.pack", world.shared))
    pack.chmod(mode)
    os.chown(pack, getattr(world, owner), -1)
    env = {"TILEWISE_CACHE_DIR": world.shared / "cache"}
    if way == "option":
        done = world.run(*world.RUN, "--pack", pack, env=env)
    else:
        done = world.run(*world.RUN, env={**env, "TILEWISE_PACKS": pack})
    assert done.returncode == 4 and told in done.stderr and os.fspath(pack) in done.stderr, done
    assert not list(world.shared.glob("cache/v1/*/*")), "nothing of it is kept"
    assert world.run(*world.RUN, env=env).returncode == 0
    world.assert_nothing_ran()


def test_a_planted_fifo_is_not_waited_for(world):
    os.mkfifo(world.shared / "fifo.pack")
    os.chown(world.shared / "fifo.pack", world.ATTACKER, world.ATTACKER)
    done = world.run(*world.RUN, "--pack", world.shared / "fifo.pack")
    assert done.returncode == 4 and "not a plain file" in done.stderr, done


def test_packs_are_written_through_no_link_and_for_their_owner(world):
    """The process number, which the unfinished file was named by, is known before the program starts."""
    words = ("build", "--arch", "cpu-generic", "--rule-set", "builtin", "--op", "gemm", "--dtype", "fp32", "--pack")
    pack = world.shared / "new.pack"
    started = subprocess.Popen(["/bin/sh", "-c", 'umask 0; read go; exec "$@"', "sh", world.binary, *words, pack], user=world.VICTIM,
                               group=world.VICTIM, extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               env={"HOME": os.fspath(world.home)})
    link = world.shared / f"new.pack.{started.pid}.tmp"
    link.symlink_to(world.precious)
    os.chown(link, world.ATTACKER, world.ATTACKER, follow_symlinks=False)
    started.communicate(b"go\n", timeout=LIMIT_SECONDS)
    assert world.precious.read_text() == "mine\n"
    assert started.returncode == 0 and stat.S_IMODE(pack.stat().st_mode) == 0o644 and pack.stat().st_uid == world.VICTIM
    planted = world.shared / "planted.pack"
    planted.symlink_to(world.precious)
    for command in ((*words, planted), ("kernels", "--arch", "gfx942", "--rule-set", "tiny", "--export", planted)):
        done = world.run(*command)
        assert done.returncode == 2 and "not a plain file" in done.stderr, done
    assert world.precious.read_text() == "mine\n"


# ---- tuning results and records --------------------------------------------------------------------------------------


def plant(planted, kind, world):
    """Something of the attacker's where tilewise would have a file of its own."""
    if kind == "link":
        planted.symlink_to(world.precious)
    elif kind == "fifo":
        os.mkfifo(planted, 0o666)
    else:
        planted.touch(0o666)
    os.chown(planted, world.ATTACKER, world.ATTACKER, follow_symlinks=False)


@pytest.mark.parametrize("kind", ["link", "fifo", "file"])
def test_planted_tuning_results_are_not_used(world, kind):
    cache = world.copy_of_cache(world.shared / "cache", world.VICTIM)
    cache.chmod(0o1777)
    planted = cache / "tuning.jsonl"
    plant(planted, kind, world)
    done = world.run(*world.RUN, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 0, done
    (note,) = json.loads(done.stdout)["plan"]["notes"]
    assert note["kind"] == "tuning" and os.fspath(planted) in note["message"], note
    done = world.run(*world.TUNE, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 1 and os.fspath(planted) in done.stdout + done.stderr, done
    assert world.precious.read_text() == "mine\n"
    assert kind != "file" or planted.read_text() == ""


@pytest.mark.parametrize("kind", ["link", "fifo", "file"])
def test_records_are_not_written_to_a_planted_file(world, kind):
    cache = world.copy_of_cache(world.shared / "cache", world.VICTIM)
    cache.chmod(0o1777)
    planted = cache / "records.csv"
    plant(planted, kind, world)
    done = world.run(*world.TUNE, env={"TILEWISE_CACHE_DIR": cache})
    assert done.returncode == 0, done
    (note,) = json.loads(done.stdout)["results"][0]["notes"]
    assert note["kind"] == "records" and os.fspath(planted) in note["message"], note
    assert world.precious.read_text() == "mine\n"
    assert kind != "file" or planted.read_text() == ""


@pytest.mark.parametrize("user", ["ROOT", "VICTIM"])
def test_without_a_home_tuning_results_are_not_written_to_the_root(world, user):
    assert not os.path.exists("/tuning.jsonl")
    try:
        done = world.run(*world.TUNE, user=getattr(world, user), env={"HOME": ""})
        assert done.returncode == 1 and not os.path.exists("/tuning.jsonl"), done
        assert "TILEWISE_CACHE_DIR" in done.stdout + done.stderr, done
        assert not os.path.exists("/records.csv")
    finally:
        pathlib.Path("/tuning.jsonl").unlink(missing_ok=True)


# ---- builds without a cache ------------------------------------------------------------------------------------------


def test_private_builds_remove_only_what_they_made(world):
    results = world.folder(f"shared/tilewise-{world.VICTIM}-results", world.VICTIM, 0o700)
    world.file(f"shared/tilewise-{world.VICTIM}-results/figures", world.VICTIM, "mine\n")
    empty = world.folder(f"shared/tilewise-{world.VICTIM}-empty", world.VICTIM, 0o700)
    theirs = world.folder(f"shared/tilewise-{world.VICTIM}-planted", world.ATTACKER, 0o777)
    link = world.shared / f"tilewise-{world.VICTIM}-link"
    link.symlink_to(world.home)
    os.chown(link, world.ATTACKER, world.ATTACKER, follow_symlinks=False)
    done = world.run(*world.COMPILED, env={"HOME": "", "TMPDIR": world.shared})
    assert done.returncode == 0 and json.loads(done.stdout)["plan"]["origin"] == "private", done
    assert sorted(world.shared.iterdir()) == sorted([results, empty, theirs, link])
    assert (results / "figures").read_text() == "mine\n" and (world.home / "cache").is_dir()
