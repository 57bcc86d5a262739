# SPDX-License-Identifier: BSD-2-Clause
client_sources += \
	src/client/net/callback.c \
	src/client/net/caller.c \
	src/client/net/caller.h \
	src/client/net/calls.h \
	src/client/net/datacalls.c \
	src/client/net/failure.c \
	src/client/net/farewell.c \
	src/client/net/flights.c \
	src/client/net/identity.c \
	src/client/net/inside.h \
	src/client/net/interfaces.c \
	src/client/net/location.c \
	src/client/net/many.h \
	src/client/net/namecalls.c \
	src/client/net/net.c \
	src/client/net/net.h \
	src/client/net/netpath.c \
	src/client/net/netpath.h \
	src/client/net/pathfetch.c \
	src/client/net/pathfetch.h \
	src/client/net/probe.c \
	src/client/net/pulse.c \
	src/client/net/record.c \
	src/client/net/record.h \
	src/client/net/release.c \
	src/client/net/release.h \
	src/client/net/routes.c \
	src/client/net/server.c \
	src/client/net/server.h \
	src/client/net/statuscalls.c \
	src/client/net/tries.c \
	src/client/net/tries.h \
	src/client/net/verdict.c \
	src/client/net/volume.c \
	src/client/net/volume.h
