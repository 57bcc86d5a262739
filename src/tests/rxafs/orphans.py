# SPDX-License-Identifier: BSD-2-Clause
"""In a session without tokens: processes whose parents end just then cannot open a file. orphans.py FILE SECONDS"""

import os
import random
import sys
import time

path, seconds = sys.argv[1], float(sys.argv[2])
results, result = os.pipe()


def descend():
    """Parents end while their child opens the file."""
    for _ in range(5):
        if os.fork():
            until = time.monotonic() + random.random() * 3e-4
            while time.monotonic() < until:
                pass
            os._exit(0)
        try:
            os.close(os.open(path, os.O_RDONLY))
            os.write(result, b'!')
        except OSError:
            os.write(result, b'.')
    os._exit(0)


end = time.monotonic() + seconds
while time.monotonic() < end:
    children = [os.fork() or descend() for _ in range(4)]
    for child in children:
        os.waitpid(child, 0)
os.close(result)
with os.fdopen(results, 'rb') as f:
    text = f.read()
print('%d opens, %d permitted' % (len(text), text.count(b'!')))
sys.exit(1 if b'!' in text or len(text) < 100 else 0)
