#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""phones-client.py PORT: adds numbers, finds them, and prints all."""
import sys

import phones
import rxwire


def main():
    with rxwire.Endpoint() as endpoint:
        connection = endpoint.connect(("127.0.0.1", int(sys.argv[1])), phones.PHONES_SERVICE)
        client = phones.PHONESClient(connection)
        client.Add("Ada", phones.phone(phones.PHONE_HOME, "12345"))
        count = client.Add("Ada", phones.phone(phones.PHONE_MOBILE, "0170 1"), deadline=10)
        print(f"Ada has {count} numbers")
        for number in client.Find("Ada"):
            print(number.kind.name, number.number)
        try:
            client.Find("Charles")
        except rxwire.RxAbort as error:
            print("Charles is unknown" if error.code == phones.PHONES_UNKNOWN else error)
        with client.Export() as stream:
            length = int.from_bytes(stream.read(4), "big")
            text = stream.read(length).decode()
            lines = stream.finish()
        print(f"{lines} lines, the last is {text.splitlines()[-1]!r}")


if __name__ == "__main__":
    main()
