# SPDX-License-Identifier: BSD-2-Clause
"""locks.py MOUNT MOUNT: four processes, two at each mount, count in one file under a lock. Half of them unlock, half just close."""
import fcntl
import os
import sys

ROUNDS = 40


def count_up(path, unlocks):
    for _ in range(ROUNDS):
        f = os.open(path, os.O_RDWR)
        fcntl.flock(f, fcntl.LOCK_EX)
        number = int(os.pread(f, 20, 0))
        os.pwrite(f, b"%d" % (number + 1), 0)
        if unlocks:
            fcntl.flock(f, fcntl.LOCK_UN)
        os.close(f)


def main():
    mounts = sys.argv[1:3]
    with open(mounts[0] + "/count", "wb") as f:
        f.write(b"0")
    children = []
    for k in range(4):
        child = os.fork()
        if not child:
            try:
                count_up(mounts[k % 2] + "/count", k < 2)
            except (OSError, ValueError) as e:
                print(f"process {k}: {e}", flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    bad = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    for mount in mounts:
        with open(mount + "/count", "rb") as f:
            number = int(f.read())
        if number != 4 * ROUNDS:
            print(f"{mount}: {number} of {4 * ROUNDS}")
            bad += 1
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
