# SPDX-License-Identifier: BSD-2-Clause
"""Rx, the remote procedure calls of AFS, with librxwire: doc/python.md."""
from rxwire import _abi
from rxwire.core import (Call, Connection, Endpoint, Engine, Identity, Keys, Pool, Security, ServerCall, Token, rxgk_server,
                         rxkad_server)
from rxwire.errors import DecodeError, EncodeError, Error, RxAbort, RxError, RxTimeout, XdrError

globals().update({name: value for name, value in vars(_abi).items() if name.startswith("RXW_")})


def version():
    """The version of the library, "0.1.0"."""
    return _abi.lib.rxw_version().decode()


def code_from_errno(errno):
    """The portable code for an errno value, for RxAbort."""
    return _abi.lib.rxw_code_from_errno(_abi.number(_abi.C.c_int, errno, "an errno value"))
