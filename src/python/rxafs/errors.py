# SPDX-License-Identifier: BSD-2-Clause
"""Failures of the library as OSError, which has a subclass for each usual errno."""
from __future__ import annotations

import ctypes as C

from rxafs import _abi


def make_error(result: int, request: _abi.rxafs_request, path: object = None, path2: object = None) -> OSError:
    """The exception for a negative result.

    `afs_code` is the code of a server's answer or 0, `afs_server` its address, `maybe_done` whether a change that was not
    answered may have been made.
    """
    text = _abi.lib.rxafs_error_text(C.byref(request), result).decode(errors="replace")
    # FileNotFoundError and so on: OSError chooses by the number.
    if path2 is not None:
        error = OSError(-result, text, path, None, path2)
    elif path is not None:
        error = OSError(-result, text, path)
    else:
        error = OSError(-result, text)
    error.afs_code = request.failure.code  # type: ignore[attr-defined]
    error.afs_server = request.failure.server.decode(errors="replace")  # type: ignore[attr-defined]
    error.maybe_done = bool(request.failure.maybe_done)  # type: ignore[attr-defined]
    return error
