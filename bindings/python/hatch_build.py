"""Puts the shared libraries beside the package, and says on which platform they run."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("libredlock.so", "libredlock-core.so")


class BuildHook(BuildHookInterface[Any]):
    """A wheel with the libraries of REDLOCK_BUILD_LIB, or else of the checkout's build/lib."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built."""
        if version == "editable":
            return  # the package finds build/lib of the checkout
        folder = Path(os.environ.get("REDLOCK_BUILD_LIB") or Path(self.root, "../../build/lib"))
        for library in LIBRARIES:
            if not (folder / library).is_file():
                raise FileNotFoundError(
                    f"{folder / library} is missing: run build.sh, or let REDLOCK_BUILD_LIB name"
                    " the folder with the shared libraries"
                )
            build_data["force_include"][str(folder / library)] = f"libredlock/{library}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
