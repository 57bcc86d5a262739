# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, TypeVar

from rxwire import xdr
from rxwire.core import Call as Call, Connection, Pool, ServerCall as ServerCall

REQUEST_MAX: int
REPLY_MAX: int
_T = TypeVar("_T")
_Fields = tuple[tuple[str, xdr.Kind], ...]

class Procedure:
    name: str
    opcode: int
    split: bool
    swap_errno: bool
    codes: Mapping[int, str]
    def __init__(self, name: str, opcode: int, arguments: _Fields, results: _Fields, split: bool = False,
                 swap_errno: bool = False, codes: Mapping[int, str] | None = None) -> None: ...

class Stream(Call):
    def __init__(self, connection: Connection | Pool, procedure: Procedure, values: tuple[Any, ...],
                 deadline: float | None = None) -> None: ...
    def finish(self) -> Any: ...

class Client:
    rxw_connection: Connection | Pool
    def __init__(self, connection: Connection | Pool) -> None: ...
    # The generated method says what it returns.
    def rxw_call(self, procedure: Procedure, values: tuple[Any, ...],
                 deadline: float | None = None) -> _T: ...  # type: ignore[type-var]
    def rxw_stream(self, procedure: Procedure, values: tuple[Any, ...], deadline: float | None = None) -> Stream: ...

class Service:
    rxw_procedures: ClassVar[dict[int, tuple[Procedure, str]]]
    rxw_request_max: ClassVar[int]
    rxw_swap_errno: ClassVar[bool]
    def rxw_enter(self, call: ServerCall, procedure: Procedure | None) -> None: ...
    def rxw_serve(self, call: ServerCall) -> int: ...

def refuse(call: ServerCall) -> NoReturn: ...
