# SPDX-License-Identifier: BSD-2-Clause
# Which of several paths to a server carries which bytes of a file. Pure: no I/O, no clock.

client_sources += src/client/paths/spread.c src/client/paths/spread.h
