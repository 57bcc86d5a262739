# SPDX-License-Identifier: BSD-2-Clause
"""Test values for a type of xgread.py: random values, their XDR by xdrlib, and as ctypes.

A coder has `ct` (the ctypes type), `words` (of a small value), and
    make(random)        a value: int, bool, float, bytes, list, dict, (case, value) or None
    pack(packer, v)     its XDR, by an xdrlib.Packer
    to_c(v, keep)       the value for a ctypes field; objects in `keep` own its memory
    from_c(c)           the value of a ctypes field
"""

import ctypes as C
import struct

try:
    import xdrlib

    Packer = xdrlib.Packer
    packer_from = "xdrlib"
except ImportError:  # removed in Python 3.13
    packer_from = "a replacement of xdrlib, which this python3 lacks"

    class Packer:
        """The methods of xdrlib.Packer that are used here."""

        def __init__(self):
            self.reset()

        def reset(self):
            self.parts = []

        def get_buffer(self):
            return b"".join(self.parts)

        def add(self, form, v):
            self.parts.append(struct.pack(form, v))

        def pack_int(self, v):
            self.add(">i", v)

        def pack_uint(self, v):
            self.add(">I", v)

        def pack_bool(self, v):
            self.add(">I", 1 if v else 0)

        def pack_hyper(self, v):
            self.add(">Q", v & 0xFFFFFFFFFFFFFFFF)

        def pack_float(self, v):
            self.add(">f", v)

        def pack_double(self, v):
            self.add(">d", v)

        def pack_fopaque(self, n, v):
            self.parts.append(v + bytes(-n % 4))

        def pack_bytes(self, v):
            self.add(">I", len(v))
            self.pack_fopaque(len(v), v)

        def pack_farray(self, n, v, item):
            for e in v:
                item(e)

        def pack_array(self, v, item):
            self.add(">I", len(v))
            self.pack_farray(len(v), v, item)


DEEP = 5  # nesting of optional values, except lists
# name: ctypes type, bits, signed, method of the packer
INTEGERS = {
    "i32": (C.c_int32, 32, True, "pack_int"),
    "u32": (C.c_uint32, 32, False, "pack_uint"),
    "i16": (C.c_int16, 16, True, "pack_int"),
    "u16": (C.c_uint16, 16, False, "pack_uint"),
    "i8": (C.c_int8, 8, True, "pack_int"),
    "u8": (C.c_uint8, 8, False, "pack_uint"),
    "i64": (C.c_int64, 64, True, "pack_hyper"),
    "u64": (C.c_uint64, 64, False, "pack_hyper"),
}
CODES = {(32, True): "i", (32, False): "I", (16, True): "h", (16, False): "H", (8, True): "b", (8, False): "B",
         (64, True): "q", (64, False): "Q"}


class Integer:
    words = 1

    def __init__(self, kind):
        self.ct, self.bits, self.signed, self.method = INTEGERS[kind]
        low = -(1 << self.bits - 1) if self.signed else 0
        high = low + (1 << self.bits) - 1
        self.edges = (low, high, 0, 1, high - 1, low + 1, low // 2, high // 2)
        self.code = CODES[self.bits, self.signed]

    def make(self, r):
        if r.random() < 0.2:
            return self.edges[r.getrandbits(3)]
        v = r.getrandbits(self.bits)
        return v - (1 << self.bits) if self.signed and v >> self.bits - 1 else v

    def make_many(self, r, n):
        many = list(struct.unpack(f"={n}{self.code}", r.randbytes(n * self.bits // 8)))
        for _ in range(min(n, 3)):
            many[r.randrange(n)] = self.edges[r.getrandbits(3)]
        return many

    def pack(self, p, v):
        getattr(p, self.method)(v)

    def to_c(self, v, keep):
        return v

    def from_c(self, c):
        return c


class Enum(Integer):
    """Any number is valid; named values are more frequent."""

    def __init__(self, values):
        Integer.__init__(self, "i32")
        self.edges = [values[i % len(values)] for i in range(8)]


class Bool:
    ct, words = C.c_bool, 1

    def make(self, r):
        return bool(r.getrandbits(1))

    def pack(self, p, v):
        p.pack_bool(v)

    def to_c(self, v, keep):
        return v

    def from_c(self, c):
        return c


class Real:
    """Without NaN, which is not equal to itself."""

    def __init__(self, kind):
        self.ct = C.c_float if kind == "float" else C.c_double
        self.form = ">f" if kind == "float" else ">d"
        self.method = "pack_" + kind
        self.words = struct.calcsize(self.form) // 4

    def make(self, r):
        v = struct.unpack(self.form, r.randbytes(self.words * 4))[0]
        return r.choice((0.0, -0.0, float("inf"), 1.5)) if v != v else v

    def pack(self, p, v):
        getattr(p, self.method)(v)

    def to_c(self, v, keep):
        return v

    def from_c(self, c):
        return c


class Struct:
    def __init__(self, name):
        self.ct = type(name, (C.Structure,), {})
        self.fields, self.words = [], 0

    def complete(self, fields):
        self.fields = fields
        self.ct._fields_ = [(name, coder.ct) for name, coder in fields]
        self.words = sum(coder.words for _, coder in fields)

    def make(self, r):
        return {name: coder.make(r) for name, coder in self.fields}

    def pack(self, p, v):
        for name, coder in self.fields:
            coder.pack(p, v[name])

    def to_c(self, v, keep):
        c = self.ct()
        for name, coder in self.fields:
            setattr(c, name, coder.to_c(v[name], keep))
        return c

    def from_c(self, c):
        return {name: coder.from_c(getattr(c, name)) for name, coder in self.fields}


def uuid():
    coder = Struct("uuid")
    coder.complete([("time_low", Integer("u32")), ("time_mid", Integer("u16")), ("time_hi", Integer("u16")),
                    ("clock_hi", Integer("i8")), ("clock_low", Integer("i8")), ("node", Array(Integer("i8"), 6))])
    return coder


class Array:
    """T x[n], without a count on the wire."""

    def __init__(self, element, n):
        self.element, self.n = element, n
        self.ct, self.words = element.ct * n, element.words * n

    def make(self, r):
        if isinstance(self.element, Integer):
            return self.element.make_many(r, self.n)
        return [self.element.make(r) for _ in range(self.n)]

    def pack(self, p, v):
        e = self.element
        p.pack_farray(self.n, v, getattr(p, e.method) if hasattr(e, "method") else lambda i: e.pack(p, i))

    def to_c(self, v, keep):
        return elements_to_c(self.element, v, keep)

    def from_c(self, c):
        return elements_from_c(self.element, c)


def elements_to_c(e, v, keep):
    if isinstance(e, (Integer, Bool, Real)):
        return (e.ct * len(v))(*v)
    return (e.ct * len(v))(*[e.to_c(i, keep) for i in v])


def elements_from_c(e, c):
    if isinstance(e, (Integer, Bool, Real)):
        return c[:]
    return [e.from_c(i) for i in c]


class Counted:
    """T x<n>: { uint32_t len; T *val; }."""

    class ct(C.Structure):
        _fields_ = [("len", C.c_uint32), ("val", C.c_void_p)]

    def __init__(self, element, bound, large):
        self.element, self.bound, self.large, self.words = element, bound, large, 3

    def length(self, r):
        """Mostly small; sometimes the bound, or the maximum for a fast test."""
        most = min(self.bound, max(1, self.large // max(1, self.element.words)))
        dice = r.random()
        if dice < 0.004:
            return most
        if dice < 0.01:
            return r.randint(0, most)
        return r.randint(0, min(most, 3))

    def make(self, r):
        n = self.length(r)
        if isinstance(self.element, Integer):
            return self.element.make_many(r, n)
        return [self.element.make(r) for _ in range(n)]

    def pack(self, p, v):
        e = self.element
        p.pack_array(v, getattr(p, e.method) if hasattr(e, "method") else lambda i: e.pack(p, i))

    def to_c(self, v, keep):
        if not v:
            return self.ct(0, None)
        memory = elements_to_c(self.element, v, keep)
        keep.append(memory)
        return self.ct(len(v), C.addressof(memory))

    def from_c(self, c):
        if not c.len:
            return []
        return elements_from_c(self.element, (self.element.ct * c.len).from_address(c.val))


class Bytes(Counted):
    """opaque x<n>."""

    def __init__(self, bound, large):
        self.bound, self.large, self.words = bound, large * 4, 3
        self.element = Integer("u8")

    def length(self, r):
        return Counted.length(self, r) if r.random() < 0.5 else r.randint(0, min(self.bound, 40))

    def make(self, r):
        return r.randbytes(self.length(r))

    def pack(self, p, v):
        p.pack_bytes(v)

    def to_c(self, v, keep):
        if not v:
            return self.ct(0, None)
        memory = C.create_string_buffer(v, len(v))
        keep.append(memory)
        return self.ct(len(v), C.addressof(memory))

    def from_c(self, c):
        return C.string_at(c.val, c.len) if c.len else b""


class Text(Bytes):
    """string x<n>: char *, without NUL."""

    ct = C.c_char_p

    def make(self, r):
        return Bytes.make(self, r).replace(b"\0", b"n")

    def to_c(self, v, keep):
        keep.append(v)
        return v

    def from_c(self, c):
        return c


class Block:
    """opaque x[n]."""

    def __init__(self, n):
        self.n, self.ct, self.words = n, C.c_ubyte * n, (n + 3) // 4

    def make(self, r):
        return r.randbytes(self.n)

    def pack(self, p, v):
        p.pack_fopaque(self.n, v)

    def to_c(self, v, keep):
        return self.ct(*v)

    def from_c(self, c):
        return bytes(c)


def as_object(coder, c):
    """A ctypes object of the coder's type from the result of to_c()."""
    return c if isinstance(c, (C.Structure, C.Array)) else coder.ct(c)


def content(c):
    """The argument of from_c() for such an object."""
    return c.value if isinstance(c, C._SimpleCData) else c


class Maybe:
    """T *x."""

    ct, words, depth = C.c_void_p, 1, 0

    def __init__(self, element):
        self.element = element

    def make(self, r):
        if Maybe.depth >= DEEP or r.random() < 0.4:
            return None
        Maybe.depth += 1
        v = self.element.make(r)
        Maybe.depth -= 1
        return v

    def pack(self, p, v):
        p.pack_bool(v is not None)
        if v is not None:
            self.element.pack(p, v)

    def to_c(self, v, keep):
        if v is None:
            return None
        memory = as_object(self.element, self.element.to_c(v, keep))
        keep.append(memory)
        return C.addressof(memory)

    def from_c(self, c):
        if not c:
            return None
        return self.element.from_c(content(self.element.ct.from_address(c)))


class Choice:
    """A union: struct { D d; union { arms } u; }; values are (discriminant, value of the arm)."""

    def __init__(self, name):
        self.ct = type(name, (C.Structure,), {})
        self.words = 2

    def complete(self, switch, arms):
        self.switch = switch
        self.arms = {value: (f"arm{i}", coder) for i, (value, coder) in enumerate(arms)}
        cases = [value for value, _ in arms if value is not None]
        self.cases = [bool(v) for v in cases] if isinstance(switch, Bool) else cases
        held = [(f"arm{i}", coder.ct) for i, (_, coder) in enumerate(arms) if coder]
        u = type("u", (C.Union,), {"_fields_": held})
        self.ct._fields_ = [("d", switch.ct), ("u", u)]

    def arm(self, d):
        return self.arms.get(d) or self.arms.get(None) or ("", None)

    def make(self, r):
        d = r.choice(self.cases)
        if None in self.arms and r.random() < 0.2:
            d = self.switch.make(r)
        coder = self.arm(d)[1]
        return d, coder.make(r) if coder else None

    def pack(self, p, v):
        self.switch.pack(p, v[0])
        coder = self.arm(v[0])[1]
        if coder:
            coder.pack(p, v[1])

    def to_c(self, v, keep):
        c = self.ct()
        c.d = v[0]
        name, coder = self.arm(v[0])
        if coder:
            setattr(c.u, name, coder.to_c(v[1], keep))
        return c

    def from_c(self, c):
        name, coder = self.arm(c.d)
        return c.d, coder.from_c(getattr(c.u, name)) if coder else None


def coders(types, params=(), large=4000):
    """{name: coder} of the types of a file. `large`: maximum words of a counted array.

    The result also maps each Decl in `params`, a parameter, to its coder.
    """
    done = {}

    def of_kind(kind):
        if not isinstance(kind, str):
            return of_type(kind)
        if kind in INTEGERS:
            return Integer(kind)
        if kind == "uuid":
            return uuid()
        return Bool() if kind == "bool" else Real(kind)

    def of_decl(decl):
        if decl.kind == "string":
            return Text(decl.bound, large)
        if decl.kind == "opaque":
            return Block(decl.bound) if decl.shape == "fixed" else Bytes(decl.bound, large)
        if decl.shape == "pointer":
            later = Maybe(None)
            waiting.append((later, decl.kind))
            return later
        if decl.shape == "fixed":
            return Array(of_kind(decl.kind), decl.bound)
        return Counted(of_kind(decl.kind), decl.bound, large) if decl.shape == "counted" else of_kind(decl.kind)

    def of_type(t):
        if t.name in done:
            return done[t.name]
        if t.what == "enum":
            done[t.name] = Enum(t.values)
        elif t.what == "typedef":
            done[t.name] = of_decl(t.alias)
        elif t.what == "struct":
            done[t.name] = Struct(t.name)
            done[t.name].complete([(m.name, of_decl(m)) for m in t.members])
        else:
            done[t.name] = Choice(t.name)
            done[t.name].complete(of_decl(t.switch), [(v, d and of_decl(d)) for v, d in t.arms])
        return done[t.name]

    def of_param(decl):
        return of_kind(decl.kind) if decl.shape == "pointer" else of_decl(decl)

    waiting = []
    for t in types:
        of_type(t)
        while waiting:
            later, kind = waiting.pop()
            later.element = of_kind(kind)
    done.update({decl: of_param(decl) for decl in params})
    return done
