# SPDX-License-Identifier: BSD-2-Clause
"""Exceptions: results of library functions, codes of calls, invalid values."""
from rxwire import _abi


class Error(Exception):
    """Base class of all exceptions of this package."""


class RxError(Error):
    """A function of the library has failed.

    `result` is one of the RXW_E… numbers (positive), `errno` the error of the system for RXW_ESYS, otherwise 0.
    """

    def __init__(self, result, what="", errno=0):
        self.result = abs(result)
        self.errno = errno
        text = _abi.lib.rxw_strerror(self.result).decode()
        if errno:
            import os
            text = os.strerror(errno)
        super().__init__(f"{what}: {text}" if what else text)


class RxAbort(Error):
    """A call has ended with a code other than 0.

    `code` is the code, `origin` one of RXW_ORIGIN_LOCAL and RXW_ORIGIN_PEER. Handlers raise it to end their call with
    that code.
    """

    def __init__(self, code, origin=_abi.RXW_ORIGIN_NONE):
        self.code = code
        self.origin = origin
        super().__init__(f"{_abi.lib.rxw_code_text_from(code, origin).decode()} ({code})")

    @property
    def errno(self):
        """The errno value that the code stands for; other codes are returned unchanged."""
        return _abi.lib.rxw_code_to_errno(self.code)


class XdrError(Error, ValueError):
    """A value cannot be encoded, or data is not a valid encoding."""


class EncodeError(XdrError):
    """A value does not have its type, or exceeds a bound."""


class DecodeError(XdrError):
    """Received data is not a valid encoding."""


def check(result, what=""):
    """The result of a library function if it is not negative; otherwise raises RxError."""
    if result < 0:
        raise RxError(result, what, _abi.errno() if result == -_abi.RXW_ESYS else 0)
    return result
