# SPDX-License-Identifier: BSD-2-Clause
# What a client knows: objects, promises, names of directories. Pure: no I/O, no clock.

client_sources += \
	src/client/cache/breaks.c src/client/cache/cache.h src/client/cache/changes.c src/client/cache/changes.h \
	src/client/cache/contents.c src/client/cache/doubts.c src/client/cache/listing.c src/client/cache/listing.h \
	src/client/cache/names.c src/client/cache/names.h src/client/cache/objects.c src/client/cache/parts.h src/client/cache/shards.c \
	src/client/cache/status.c src/client/cache/steps.h src/client/cache/validity.c src/client/cache/volumes.c
