#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""phones-server.py [PORT]: serves numbers until it is interrupted. Without a port: any, which it prints."""
import signal
import sys

import phones
import rxwire


class Directory(phones.PHONESService):
    def __init__(self):
        self.people = {}

    def Find(self, call, name):
        if name not in self.people:
            raise rxwire.RxAbort(phones.PHONES_UNKNOWN)
        return self.people[name]

    def Add(self, call, name, number):
        self.people.setdefault(name, []).append(number)
        return len(self.people[name])

    def Export(self, call):
        lines = [f"{name}\t{number.number}\n" for name, numbers in self.people.items() for number in numbers]
        text = "".join(lines).encode()
        call.write(len(text).to_bytes(4, "big") + text)
        return len(lines)


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with rxwire.Endpoint(address=("127.0.0.1", port), server=True) as endpoint:
        endpoint.add_service(phones.PHONES_SERVICE, Directory())
        print(f"port {endpoint.address[1]}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        endpoint.stop(5)


if __name__ == "__main__":
    # Threads of the library block all signals. So does this one, except in sigwait().
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
