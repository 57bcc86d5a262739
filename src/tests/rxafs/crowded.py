# SPDX-License-Identifier: BSD-2-Clause
"""A directory of many names that two clients change in turns: both see the same names. crowded.py ONE TWO CHANGES"""

import os
import random
import sys

one, two, changes = sys.argv[1], sys.argv[2], int(sys.argv[3])
failures = 0


def check(what, condition):
    global failures
    if not condition:
        failures += 1
        print('FAIL:', what)


def change(r, mount, names, i):
    """One of the two does it."""
    name, way = r.choice(names), r.randrange(3)
    if way == 0:
        fresh = f'fresh{i}'
        with open(os.path.join(mount, fresh), 'xb'):
            names.append(fresh)
    elif way == 1:
        os.unlink(os.path.join(mount, name))
        names.remove(name)
    else:
        os.rename(os.path.join(mount, name), os.path.join(mount, f'moved{i}'))
        names[names.index(name)] = f'moved{i}'
    return name


def main():
    r = random.Random(7)
    names = os.listdir(one)
    check('the names by both', sorted(names) == sorted(os.listdir(two)))
    print(f'{len(names)} names')
    for i in range(changes):
        mount, other = (one, two) if r.random() < 0.5 else (two, one)
        name = change(r, mount, names, i)
        check(f'change {i}: {name}', os.path.exists(os.path.join(other, name)) == (name in names))
        check(f'change {i}: the last one', os.path.exists(os.path.join(other, names[-1])))
    for mount in (one, two):
        seen = os.listdir(mount)
        check('no name twice', len(seen) == len(set(seen)))
        check('the names at the end', sorted(seen) == sorted(names))
    return 1 if failures else 0


sys.exit(main())
