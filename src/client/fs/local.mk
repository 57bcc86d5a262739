# SPDX-License-Identifier: BSD-2-Clause
# Objects, open files and users: the public functions.

client_sources += \
	src/client/fs/admin.c src/client/fs/change.c src/client/fs/client.c src/client/fs/content.c src/client/fs/count.c src/client/fs/dynamic.c \
	src/client/fs/enter.c src/client/fs/executor.c src/client/fs/file.c src/client/fs/find.c \
	src/client/fs/fs.h src/client/fs/leftover.c src/client/fs/leftover.h src/client/fs/target.h \
	src/client/fs/readdir.c src/client/fs/lock.c src/client/fs/lookup.c \
	src/client/fs/entries.c src/client/fs/login.c src/client/fs/newfiles.c src/client/fs/path.c src/client/fs/events.h src/client/fs/operation.c src/client/fs/listeners.c src/client/fs/listeners.h src/client/fs/queue.c src/client/fs/request.c src/client/fs/scan.c \
	src/client/fs/serverlock.c src/client/fs/serverlock.h src/client/fs/set.c src/client/fs/show.c src/client/fs/show.h src/client/fs/silly.c \
	src/client/fs/space.c src/client/fs/stream.c src/client/fs/ask.c src/client/fs/operate.h src/client/fs/upcall.c \
	src/client/fs/user.c src/client/fs/vnode.c src/client/fs/watch.c
