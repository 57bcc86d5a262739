# SPDX-License-Identifier: BSD-2-Clause
"""File operations in processes of their own. A program that is started by another one has its open files for a moment; when it
closes one of AFS, it waits as long as that file's server is away."""

import multiprocessing
import os


def put(path, data):
    with open(path, 'wb', buffering=0) as f:
        f.write(data)


def append(path, data, flushed):
    with open(path, 'ab', buffering=0) as f:
        f.write(data)
        if flushed:
            os.fsync(f.fileno())


def get(path):
    with open(path, 'rb') as f:
        return f.read()


OPERATIONS = {'put': put, 'append': append, 'get': get, 'rename': os.rename, 'unlink': os.unlink, 'mkdir': os.mkdir}


def serve(pipe):
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((None, OPERATIONS[name](*arguments)))
        except OSError as e:
            pipe.send((e, None))


class Hand:
    """One process that does one operation at a time."""

    def __init__(self):
        context = multiprocessing.get_context('spawn')
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def do(self, *operation):
        self.pipe.send(operation)
        error, result = self.pipe.recv()
        if error:
            raise error
        return result
