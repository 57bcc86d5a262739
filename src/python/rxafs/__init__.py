# SPDX-License-Identifier: BSD-2-Clause
"""Files of AFS cells, without a kernel module: doc/python.md.

    with rxafs.Client() as afs:
        afs.log_in()
        for entry in afs.scandir("/afs/example.org"):
            print(entry.name, entry.stat().st_size)
        with afs.open("/afs/example.org/notes", "w") as file:
            file.write("text")
"""
from rxafs.client import Client, DirEntry, Fid, Server, Volume
from rxafs.files import File
from rxafs.watch import Event, EventKind, Watch

__all__ = ["Client", "DirEntry", "Event", "EventKind", "Fid", "File", "Server", "Volume", "Watch"]
