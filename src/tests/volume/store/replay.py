# SPDX-License-Identifier: BSD-2-Clause
"""Rebuild a disk from a log of dm-log-writes, state by state, and check the store in each.

replay.py LOG BASE CHECKER EVERY
"""
import os
import struct
import subprocess
import sys
import tempfile

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


def entries(log):
    """The entries in order: (flags, offset in the disk, text of a mark, data)."""
    magic, version, count, sector = struct.unpack('<QQQI', log.read(28))
    if magic != MAGIC or version != 1:
        sys.exit('replay: this is no log of dm-log-writes')
    at = sector
    for _ in range(count):
        log.seek(at)
        head = log.read(sector)
        where, sectors, flags, length = struct.unpack_from('<QQQQ', head)
        at += sector
        data = b''
        if not flags & DISCARD:
            data = log.read(sectors * sector)
            at += sectors * sector
        yield flags, where * sector, head[32:32 + length].decode('ascii', 'replace') if flags & MARK else '', data


def look(base, checker, acknowledged, what):
    """Mount, by e2fsck and debugfs, a copy of the disk, and check the store. Returns why it failed, or None."""
    with tempfile.TemporaryDirectory(dir='.') as folder:
        image, out = os.path.join(folder, 'image'), os.path.join(folder, 'out')
        os.mkdir(out)
        subprocess.run(['cp', '--sparse=always', base, image], check=True)
        fsck = subprocess.run(['e2fsck', '-p', image], capture_output=True, text=True)
        if fsck.returncode > 1:
            return f'{what}: e2fsck: {fsck.stdout}'
        subprocess.run(['debugfs', '-R', f'rdump /store {out}', image], capture_output=True, check=True)
        run = subprocess.run([checker, 'check', os.path.join(out, 'store'), *map(str, acknowledged)],
                             capture_output=True, text=True)
        if run.returncode:
            return f'{what}, {acknowledged} acknowledged: {run.stdout}{run.stderr}'
    return None


def main():
    log, base, checker, every = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    acknowledged, begun, states, looked, failures = [0] * 4, False, 0, 0, []
    with open(log, 'rb') as source, open(base, 'r+b', buffering=0) as disk:
        for number, (flags, offset, text, data) in enumerate(entries(source)):
            if text == 'begin':
                begun = True
            elif text:
                if '.' in text:
                    writer, done = text.split('.')
                    acknowledged[int(writer)] = int(done)
            elif not flags & DISCARD:
                os.pwrite(disk.fileno(), data, offset)
            if not begun or not flags & (FLUSH | FUA | MARK):
                continue
            states += 1
            if states % every:
                continue
            looked += 1
            why = look(base, checker, acknowledged, f'entry {number}')
            if why:
                failures.append(why)
                print(why)
    print(f'{looked} of {states} states, {sum(acknowledged)} operations acknowledged')
    if not begun or not looked or failures or not all(acknowledged):
        print(f'FAIL: replay: {len(failures)} states')
        return 1
    print('PASS: replay')
    return 0


if __name__ == '__main__':
    sys.exit(main())
