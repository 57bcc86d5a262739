# SPDX-License-Identifier: BSD-2-Clause
client_sources += src/client/disk/disk.c \
	src/client/disk/disk.h
