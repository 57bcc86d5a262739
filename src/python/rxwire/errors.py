# SPDX-License-Identifier: BSD-2-Clause
"""Exceptions: results of library functions, codes of calls, invalid values."""
import os

from rxwire import _abi


class Error(Exception):
    """Base class of all exceptions of this package."""


class RxError(Error):
    """A function of the library has failed.

    `result` is one of the RXW_E… numbers (positive), `errno` the error of the system for RXW_ESYS, otherwise 0.
    """

    def __init__(self, result, what="", errno=0, text=None):
        self.result = abs(result)
        self.errno = errno
        self.what = what
        if not text:
            text = os.strerror(errno) if errno else _abi.lib.rxw_strerror(self.result).decode()
            text = f"{what}: {text}" if what else text
        self.text = text
        super().__init__(text)

    def __reduce__(self):
        return RxError, (self.result, self.what, self.errno, self.text)


class RxAbort(Error):
    """A call has ended with a code other than 0.

    `code` is the code, `origin` one of RXW_ORIGIN_LOCAL and RXW_ORIGIN_PEER, `procedure` the name of a procedure or
    None. The code RXW_CALL_TIMEOUT makes a subclass, RxTimeout, which is a TimeoutError as well. Handlers raise it to end their call with
    that code.
    """

    def __new__(cls, code, *_, **__):
        if cls is RxAbort and code == _abi.RXW_CALL_TIMEOUT:
            cls = RxTimeout
        return super().__new__(cls)

    def __init__(self, code, origin=_abi.RXW_ORIGIN_NONE, text=None, procedure=None):
        self.code = _abi.code(code)
        self.origin = origin
        self.procedure = procedure
        text = text or _abi.lib.rxw_code_text_from(code, origin).decode()
        self.text = f"{procedure}: {text} ({code})" if procedure else f"{text} ({code})"
        super().__init__(self.text)
        self.args = (self.text,)  # OSError, a base of RxTimeout, does not keep it

    def __str__(self):
        return self.text

    def __reduce__(self):
        return _restore, (self.code, self.origin, self.text, self.procedure)

    @property
    def errno(self):
        """The errno value that the code stands for; other codes are returned unchanged."""
        return _abi.lib.rxw_code_to_errno(self.code)


class RxTimeout(RxAbort, TimeoutError):
    """The deadline or a timeout of the connection has passed: RXW_CALL_TIMEOUT. RxAbort() makes it of that code."""


def _restore(code, origin, text, procedure):
    """An exception that was pickled, in another process."""
    error = RxAbort(code, origin, None, procedure)
    error.text = text
    return error


class XdrError(Error, ValueError):
    """A value cannot be encoded, or data is not a valid encoding."""


class EncodeError(XdrError):
    """A value does not have its type, or exceeds a bound."""


class DecodeError(XdrError):
    """Received data is not a valid encoding."""


def check(result, what="", text=None):
    """The result of a library function if it is not negative; otherwise raises RxError.

    `text` is a whole message of the function, for which `what` is used if it is empty.
    """
    if result < 0:
        raise RxError(result, what, _abi.errno() if result == -_abi.RXW_ESYS else 0, text)
    return result
