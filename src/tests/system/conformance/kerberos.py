# SPDX-License-Identifier: BSD-2-Clause
"""Encryption types 17 to 20 of Kerberos (RFC 3961, 3962, 8009) for the scripted peer: slow, and
written from the RFCs alone, as an independent check of ours."""

import hashlib
import hmac as hmac_module
import os
import struct
from math import gcd

BLOCK = 16


def _tables():
    """The S-box: inverse in GF(2^8), then the affine map."""
    exp, log, x = [0] * 256, [0] * 256, 1
    for i in range(255):
        exp[i], log[x] = x, i
        x ^= (x << 1) ^ (0x11b if x & 0x80 else 0)
        x &= 0xff
    sbox = []
    for v in range(256):
        b = exp[255 - log[v]] if v > 1 else v
        s = 0x63
        for k in range(5):
            s ^= (b << k | b >> (8 - k)) & 0xff
        sbox.append(s)
    return sbox, [sbox.index(v) for v in range(256)]


SBOX, INVERSE = _tables()


def _double(v):
    return (v << 1 ^ (0x1b if v & 0x80 else 0)) & 0xff


def _times(v, n):
    r = 0
    while n:
        if n & 1:
            r ^= v
        v, n = _double(v), n >> 1
    return r


TIMES = {n: [_times(v, n) for v in range(256)] for n in (2, 3, 9, 11, 13, 14)}


class Aes:
    def __init__(self, key):
        words = [list(key[i:i + 4]) for i in range(0, len(key), 4)]
        n, power = len(words), 1
        self.rounds = n + 6
        for i in range(n, 4 * (self.rounds + 1)):
            w = list(words[-1])
            if i % n == 0:
                w = [SBOX[v] for v in w[1:] + w[:1]]
                w[0] ^= power
                power = _double(power)
            elif n > 6 and i % n == 4:
                w = [SBOX[v] for v in w]
            words.append([a ^ b for a, b in zip(w, words[i - n])])
        self.keys = [sum(words[4 * r:4 * r + 4], []) for r in range(self.rounds + 1)]

    def encrypt(self, block):
        s = [a ^ b for a, b in zip(block, self.keys[0])]
        t2, t3 = TIMES[2], TIMES[3]
        for r in range(1, self.rounds + 1):
            s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if r < self.rounds:
                s = [t2[s[c + k]] ^ t3[s[c + (k + 1) % 4]] ^ s[c + (k + 2) % 4] ^ s[c + (k + 3) % 4]
                     for c in range(0, 16, 4) for k in range(4)]
            s = [a ^ b for a, b in zip(s, self.keys[r])]
        return bytes(s)

    def decrypt(self, block):
        s = [a ^ b for a, b in zip(block, self.keys[self.rounds])]
        t9, t11, t13, t14 = (TIMES[n] for n in (9, 11, 13, 14))
        for r in range(self.rounds - 1, -1, -1):
            s = [INVERSE[s[(i - 4 * (i % 4)) % 16]] for i in range(16)]
            s = [a ^ b for a, b in zip(s, self.keys[r])]
            if r:
                s = [t14[s[c + k]] ^ t11[s[c + (k + 1) % 4]] ^ t13[s[c + (k + 2) % 4]] ^
                     t9[s[c + (k + 3) % 4]] for c in range(0, 16, 4) for k in range(4)]
        return bytes(s)


def _xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def cts_encrypt(key, text):
    """CBC with ciphertext stealing, the last two blocks always swapped (CS3); for more than one
    block."""
    aes, last, out = Aes(key), bytes(BLOCK), []
    padded = text + bytes(-len(text) % BLOCK)
    for i in range(0, len(padded), BLOCK):
        last = aes.encrypt(_xor(padded[i:i + BLOCK], last))
        out.append(last)
    out[-2:] = [out[-1], out[-2]]
    return b''.join(out)[:len(text)]


def cts_decrypt(key, text):
    aes = Aes(key)
    short = len(text) % BLOCK or BLOCK
    head, swapped, tail = text[:-short - BLOCK], text[-short - BLOCK:-short], text[-short:]
    middle = aes.decrypt(swapped)
    before_last = tail + middle[short:]
    blocks = [head[i:i + BLOCK] for i in range(0, len(head), BLOCK)] + [before_last]
    out, last = [], bytes(BLOCK)
    for b in blocks:
        out.append(_xor(aes.decrypt(b), last))
        last = b
    out.append(_xor(middle, before_last)[:short])
    return b''.join(out)


def fold(data, size):
    """RFC 3961 5.1: n-fold."""
    length = len(data) * size // gcd(len(data), size)
    bits = ''.join('{:08b}'.format(v) for v in data)
    text = ''
    while len(text) < 8 * length:
        text += bits
        bits = _rotate(bits, 13)
    total = 0
    for i in range(0, length, size):
        total += int(text[8 * i:8 * (i + size)], 2)
    while total >> 8 * size:
        total = (total & (1 << 8 * size) - 1) + (total >> 8 * size)
    return total.to_bytes(size, 'big')


def _rotate(bits, n):
    n %= len(bits)
    return bits[-n:] + bits[:-n]


class Enctype:
    def __init__(self, number):
        self.number = number
        self.size = 16 if number in (17, 19) else 32
        self.later = number >= 19               # RFC 8009
        self.hash = {19: 'sha256', 20: 'sha384'}.get(number, 'sha1')
        self.mac = {19: 16, 20: 24}.get(number, 12)

    def hmac(self, key, data):
        return hmac_module.new(key, data, self.hash).digest()

    def _kdf(self, key, label, size, context=b''):
        return self.hmac(key, b'\0\0\0\1' + label + b'\0' + context + struct.pack('>I', 8 * size))[:size]

    def derive(self, key, constant, size):
        if self.later:
            return self._kdf(key, constant, size)
        aes, block, out = Aes(key), fold(constant, BLOCK), b''
        while len(out) < self.size:
            block = aes.encrypt(block)
            out += block
        return out[:self.size]

    def _keys(self, key, usage, kinds):
        sizes = {0xaa: self.size}
        return [self.derive(key, struct.pack('>IB', usage, k), sizes.get(k, self.mac if self.later else 0))
                for k in kinds]

    def encrypt(self, key, usage, plain):
        ke, ki = self._keys(key, usage, (0xaa, 0x55))
        text = os.urandom(BLOCK) + plain
        sealed = cts_encrypt(ke, text)
        mac = self.hmac(ki, bytes(BLOCK) + sealed if self.later else text)[:self.mac]
        return sealed + mac

    def decrypt(self, key, usage, sealed):
        """The plaintext, or None."""
        if len(sealed) <= BLOCK + self.mac:
            return None
        ke, ki = self._keys(key, usage, (0xaa, 0x55))
        body, mac = sealed[:-self.mac], sealed[-self.mac:]
        text = cts_decrypt(ke, body)
        if self.hmac(ki, bytes(BLOCK) + body if self.later else text)[:self.mac] != mac:
            return None
        return text[BLOCK:]

    def mic(self, key, usage, data):
        return self.hmac(self._keys(key, usage, (0x99,))[0], data)[:self.mac]

    def prf(self, key, data):
        if self.later:
            return self._kdf(key, b'prf', {19: 32, 20: 48}[self.number], data)
        return Aes(self.derive(key, b'prf', 0)).encrypt(hashlib.sha1(data).digest()[:BLOCK])

    def prf_plus(self, key, seed, size):
        out, n = b'', 1
        while len(out) < size:
            out += self.prf(key, struct.pack('>I', n) + seed)
            n += 1
        return out[:size]
