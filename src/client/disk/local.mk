# SPDX-License-Identifier: BSD-2-Clause
client_sources += src/client/disk/disk.c \
	src/client/disk/disk.h \
	src/client/disk/folder.h \
	src/client/disk/log.c \
	src/client/disk/places.c \
	src/client/disk/sum.c \
	src/client/disk/sum.h \
	src/client/disk/table.c \
	src/client/disk/whole.c \
	src/client/disk/whole.h
