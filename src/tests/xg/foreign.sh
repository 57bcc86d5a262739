# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Detects that python3 cannot load a library for another machine or C library. To be sourced.

# foreign LIBRARY: returns 0 and prints the reason if so. Other reasons are left to the caller.
foreign() {
	python3 -B - "$1" << 'END'
import platform
import sys

theirs = open(sys.argv[1], "rb").read()
ours = open(sys.executable, "rb").read(20)
# Class, byte order and machine of the ELF header.
if theirs[4:6] + theirs[18:20] != ours[4:6] + ours[18:20]:
    print("SKIP: python3 is of another machine than the library it would load")
elif platform.libc_ver()[0] == "glibc" and b"\0libc.so\0" in theirs and b"\0libc.so.6\0" not in theirs:
    print("SKIP: python3 has another C library than the library it would load")
else:
    sys.exit(1)
END
}
