# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any, TypeVar

_C = TypeVar("_C", bound=type)

class Decoder:
    data: bytes | bytearray | memoryview
    at: int
    end: int
    def __init__(self, data: bytes | bytearray | memoryview) -> None: ...
    def remaining(self) -> int: ...

class Type:
    """An object with put(), get(), default() and `least`. This class exists for type checkers only."""

    least: int
    def put(self, out: bytearray, value: Any) -> None: ...
    def get(self, decoder: Decoder) -> Any: ...
    def default(self) -> Any: ...

Kind = Type | type[Any]  # a class made by @structure or @union, or an IntEnum

INT: Type
UINT: Type
SHORT: Type
USHORT: Type
CHAR: Type
UCHAR: Type
HYPER: Type
UHYPER: Type
FLOAT: Type
DOUBLE: Type
BOOL: Type
UUID: Type

class opaque(Type):
    def __init__(self, bound: int) -> None: ...

class string(opaque): ...

class fixed_opaque(Type):
    def __init__(self, size: int) -> None: ...

class array(Type):
    def __init__(self, element: Kind, size: int) -> None: ...

class sequence(Type):
    def __init__(self, element: Kind, bound: int) -> None: ...

class optional(Type):
    def __init__(self, target: Kind | Callable[[], Kind], deep: bool = False) -> None: ...

def structure(*fields: tuple[str, Kind], linked: bool = False) -> Callable[[_C], _C]: ...
def union(switch: tuple[str, Kind], *arms: tuple[int | None, str | None, Kind | None]) -> Callable[[_C], _C]: ...
def put(kind: Kind, out: bytearray, value: Any) -> None: ...
def get(kind: Kind, decoder: Decoder) -> Any: ...
def encode(kind: Kind, value: Any) -> bytes: ...
def decode(kind: Kind, data: bytes | bytearray | memoryview) -> Any: ...
