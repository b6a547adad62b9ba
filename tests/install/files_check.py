# SPDX-License-Identifier: MIT
"""What `cmake --install` puts beside the library: that it is there, and says what it should. Run by `make test-install` with the
prefix."""
import pathlib
import shutil
import subprocess
import sys

FILES = ("bin/tilewise", "include/tilewise/tilewise.h", "share/man/man1/tilewise.1", "share/bash-completion/completions/tilewise",
         "share/zsh/site-functions/_tilewise", "share/fish/vendor_completions.d/tilewise.fish", "share/doc/tilewise/LICENSE")
CONFIG = ("tilewise-config.cmake", "tilewise-config-version.cmake", "tilewise.pc")


def main(prefix):
    for name in FILES:
        assert (prefix / name).stat().st_size > 0, name
    found = {name: next(prefix.rglob(name)) for name in CONFIG}
    if shutil.which("pkg-config"):
        told = subprocess.run(["pkg-config", "--cflags", "--libs", "tilewise"], capture_output=True, text=True, check=True,
                              env={"PKG_CONFIG_PATH": str(found["tilewise.pc"].parent), "PATH": "/usr/bin:/bin"}).stdout
        assert f"-I{prefix}/include" in told and "-ltilewise" in told, told
    print("files_check: all files are there")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
