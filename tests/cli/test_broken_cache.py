# SPDX-License-Identifier: MIT
"""A cache that is there but cannot be used as it should: entries that are no kernels, file systems that forbid things."""
import hashlib
import json
import os
import subprocess

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny", "--strategy", "rules")


def test_an_entry_without_a_kernel_heals_itself(ask, run, tmp_path):
    """Its manifest says that it is whole, and it is: another library. It is built anew, for later processes as well."""
    env = {"TILEWISE_CACHE_DIR": str(tmp_path)}
    first = ask("run", GEMM, *POOL, env=env)
    (entry,) = [path for path in (tmp_path / "v1").glob("*/*") if first["kernel"] in (path / "manifest.json").read_text()]
    subprocess.run(["cc", "-shared", "-x", "c", "-o", entry / "kernel.so", "/dev/null"], check=True)
    os.chmod(entry / "kernel.so", 0o600)
    manifest, other = json.loads((entry / "manifest.json").read_text()), (entry / "kernel.so").read_bytes()
    manifest |= {"size": len(other), "sha256": hashlib.sha256(other).hexdigest()}
    (entry / "manifest.json").write_text(json.dumps(manifest))
    again = ask("run", GEMM, *POOL, "--validate", env=env)
    assert again["validation"]["ok"] and again["kernel"] == first["kernel"] and again["plan"]["origin"] != "cache"
    assert ask("run", GEMM, *POOL, env=env)["plan"]["origin"] == "cache"


def mounted(options, folder, *command):
    """Runs a command where `folder` is mounted with these options, for it alone."""
    script = 'mount -t tmpfs -o mode=700 none "$1" && { [ -z "$3" ] || cp -r "$3/." "$1"; } && mount -o "remount,$2" "$1" && shift 3 && exec "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(folder), options, str(command[0] or ""), *map(str, command[1:])],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "TILEWISE_CACHE_DIR": str(folder)})


@pytest.fixture
def mount_point(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    tried = mounted("noexec", folder, None, "true")
    if tried.returncode:
        pytest.skip(f"mounting takes the rights of root: {tried.stderr.strip()}")
    return folder


@pytest.mark.parametrize("words", [POOL, ("--rule-set", "builtin")], ids=["compiled", "builtin"])
def test_a_cache_that_forbids_execution(binary, mount_point, words):
    done = mounted("noexec", mount_point, None, binary, "run", GEMM, *words, "--validate", "--json")
    answer = json.loads(done.stdout)
    assert answer["validation"]["ok"], done.stderr
    (note,) = [note for note in answer["plan"]["notes"] if note["kind"] == "cache"]
    assert "noexec" in note["message"] and "memory" in note["message"]
    doctor = mounted("noexec", mount_point, None, binary, "doctor", "--json")
    (found,) = [item for item in json.loads(doctor.stdout)["checks"] if item["check"] == "cache"]
    assert doctor.returncode == 0 and found["level"] == "warn" and "noexec" in found["found"]


@pytest.mark.parametrize("words", [POOL, ("--rule-set", "builtin")], ids=["compiled", "builtin"])
def test_a_cache_that_is_read_only(binary, mount_point, words):
    done = mounted("ro", mount_point, None, binary, "run", GEMM, *words, "--validate", "--json")
    answer = json.loads(done.stdout)
    assert answer["validation"]["ok"], done.stderr
    (note,) = [note for note in answer["plan"]["notes"] if note["kind"] == "cache"]
    assert "Read-only file system" in note["message"]
    doctor = mounted("ro", mount_point, None, binary, "doctor", "--json")
    (found,) = [item for item in json.loads(doctor.stdout)["checks"] if item["check"] == "cache"]
    assert doctor.returncode == 1 and found["level"] == "FAIL" and "Read-only file system" in found["found"]
