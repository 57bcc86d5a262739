# SPDX-License-Identifier: BSD-2-Clause
client_sources += src/client/data/access.c \
	src/client/data/blocks.c \
	src/client/data/filestate.h \
	src/client/data/data.h \
	src/client/data/extents.c \
	src/client/data/extents.h \
	src/client/data/fetching.c \
	src/client/data/instance.c \
	src/client/data/jobs.c \
	src/client/data/jobs.h \
	src/client/data/filesteps.h \
	src/client/data/storing.c \
	src/client/data/version.c \
	src/client/data/waiting.c
