"""
Installs other people's programs, which tests/strangers runs, from npm and Debian into a folder of their own.

``make strangers`` runs it. A program that cannot be had here is named, and its tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# The program, its module for Elasticsearch, and the libraries that only they use. The packages are unpacked, not
# installed: the machine stays as it is.
DEBIAN = ("rsyslog", "rsyslog-elasticsearch", "libestr0", "libfastjson4", "liblognorm5")


def main() -> None:
    """Install into the folder that the command names."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, install in {"npm": install_from_npm, "apt-get": install_from_debian}.items():
        if shutil.which(name) is None:
            print(f"{name} is missing: tests that need it are skipped")  # noqa: T201 - a command
            continue
        try:
            install(folder)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: tests that need it are skipped ({error})")  # noqa: T201


def install_from_npm(folder: Path) -> None:
    """Install the packages of package.json."""
    shutil.copy(HERE / "package.json", folder)
    # No package may run a script of its own, and none of these needs one.
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", folder=folder)


def install_from_debian(folder: Path) -> None:
    """Unpack rsyslog."""
    root = folder / "debian"
    if root.exists():
        return
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    run("apt-get", "download", "--quiet", *DEBIAN, folder=packages)
    for package in packages.glob("*.deb"):
        run("dpkg-deb", "--extract", str(package), str(root), folder=packages)


def run(*command: str, folder: Path) -> None:
    """Run *command* in *folder*."""
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main()
