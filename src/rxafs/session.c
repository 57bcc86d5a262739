/* SPDX-License-Identifier: BSD-2-Clause */
/* The session with the kernel: what is negotiated, and the threads that read requests. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rxafs/kernel.h"
#include "rxafs/readers.h"
#include "rxafs/task.h"
#include "rxafs/through.h"

#define READ_AHEAD_KB 1024

/* Of the kernel's protocol: it can look up several names of a directory at a time. */
#define PARALLEL_MINOR 25

/*
 * Flags of newer kernels, which older ones ignore. FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6): files that are open for appending can
 * be mapped. FUSE_NO_EXPORT_SUPPORT (6.8): there are no handles of files, since those that the kernel would make end with its cache.
 */
#define MAP_DIRECT (UINT64_C(1) << 36)
#define NO_HANDLES (UINT64_C(1) << 38)

/* Files of the cache may be given to the kernel, of file systems that do not use others. */
static void offer_files(struct fuse_init_out *answer)
{
	uint32_t depth = 1;

	/* The member max_stack_depth of Linux 6.9. */
	memcpy((char *)answer + offsetof(struct fuse_init_out, flags2) + sizeof answer->flags2,
	       &depth, sizeof depth);
	answer->flags2 |= (uint32_t)(THROUGH_INIT >> 32);
}

/*
 * Linux 5.11: the kernel asks for security.capability before the first write to a file, and no longer before each. No file has it, and
 * set-ID bits mean nothing in a mount.
 */
#define ONE_QUESTION FUSE_HANDLE_KILLPRIV_V2

/*
 * libfuse 3.14 does not pass FUSE_PARALLEL_DIROPS on, although it offers it. Without it the kernel looks up one name of a
 * directory at a time, and who waits for his turn cannot be killed. So the flag is put into the first answer, that to INIT.
 */
static ssize_t write_to_kernel(int fd, struct iovec *iov, int count, void *arg)
{
	struct mount *mount = arg;

	if (!atomic_exchange(&mount->greeted, true) && count == 2 && mount->parallel_names &&
	    iov[1].iov_len >= offsetof(struct fuse_init_out, flags2) + 8) {
		struct fuse_init_out *answer = iov[1].iov_base;

		answer->flags |= FUSE_PARALLEL_DIROPS | FUSE_INIT_EXT | ONE_QUESTION;
		answer->flags2 |= (uint32_t)((MAP_DIRECT | NO_HANDLES) >> 32);
		if (atomic_load(&mount->may_go_through))
			offer_files(answer);
	}
	(void)fd;
	return writev(mount->device, iov, count);
}

static ssize_t read_from_kernel(int fd, void *buffer, size_t length, void *arg)
{
	const struct mount *mount = arg;

	(void)fd;
	return read(mount->device, buffer, length);
}

int mount_begin_session(struct mount *mount)
{
	static const struct fuse_custom_io io = {.writev = write_to_kernel,
						 .read = read_from_kernel};

	mount->device = fcntl(fuse_session_fd(mount->session), F_DUPFD_CLOEXEC, 0);
	if (mount->device < 0)
		return -errno;
	return fuse_session_custom_io(mount->session, &io, fuse_session_fd(mount->session));
}

/*
 * Threads may still answer requests, so the number must not become that of another file. With the last descriptor of
 * the device the kernel ends the connection, and all who wait.
 */
void mount_end_session(struct mount *mount)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (mount->device >= 0 && nothing >= 0)
		dup3(nothing, mount->device, O_CLOEXEC);
	if (nothing >= 0)
		close(nothing);
	fuse_session_unmount(mount->session);
}

static void want_if_capable(struct fuse_conn_info *conn, unsigned caps)
{
	conn->want |= conn->capable & caps;
}

/*
 * The kernel drops pages when it is told to, not when it sees another time (K-159), and keeps no changes of its
 * own (K-158). After asynchronous direct writes it would leave the pages of others as they were.
 */
static void begin_session(void *arg, struct fuse_conn_info *conn)
{
	struct mount *mount = arg;

	kernel_begin(mount, conn->proto_minor);
	mount->parallel_names = conn->proto_minor >= PARALLEL_MINOR;
	conn->want &= ~(
		unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_POSIX_ACL |
			  FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
			  FUSE_CAP_SPLICE_MOVE | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_ASYNC_DIO);
	want_if_capable(conn, FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ASYNC_READ |
				      FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS |
				      FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
				      FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS |
				      FUSE_CAP_HANDLE_KILLPRIV);
	/* The library bounds what waits for a server. A bound for all of them would stop reads from others. */
	conn->max_background = UINT16_MAX;
	conn->congestion_threshold = UINT16_MAX / 4 * 3;
	conn->time_gran = 1000000000;
}

static void serve_forget(fuse_req_t req, fuse_ino_t node, uint64_t count)
{
	struct mount *mount = fuse_req_userdata(req);

	if (node != FUSE_ROOT_ID)
		rxafs_release_many(node_object(mount, node), count);
	fuse_reply_none(req);
}

static void serve_forgets(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct mount *mount = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		if (forgets[i].ino != FUSE_ROOT_ID)
			rxafs_release_many(node_object(mount, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static void serve_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length,
			    struct fuse_file_info *fi)
{
	(void)node, (void)mode, (void)offset, (void)length, (void)fi;
	fuse_reply_err(req, EOPNOTSUPP);
}

const struct fuse_lowlevel_ops mount_operations = {
	.init = begin_session,
	.lookup = serve_lookup,
	.forget = serve_forget,
	.forget_multi = serve_forgets,
	.getattr = serve_getattr,
	.setattr = serve_setattr,
	.readlink = serve_readlink,
	.access = serve_access,
	.statfs = serve_statfs,
	.getxattr = serve_getxattr,
	.setxattr = serve_setxattr,
	.listxattr = serve_listxattr,
	.removexattr = serve_removexattr,
	.mknod = serve_mknod,
	.mkdir = serve_mkdir,
	.unlink = serve_unlink,
	.rmdir = serve_rmdir,
	.symlink = serve_symlink,
	.rename = serve_rename,
	.link = serve_link,
	.create = serve_create,
	.open = serve_open,
	.read = serve_read,
	.write = serve_write,
	.flush = serve_flush,
	.release = serve_release,
	.fsync = serve_fsync,
	.getlk = serve_getlk,
	.setlk = serve_setlk,
	.flock = serve_flock,
	.opendir = serve_opendir,
	.readdir = serve_readdir,
	.readdirplus = serve_readdirplus,
	.releasedir = serve_releasedir,
	.fsyncdir = serve_fsyncdir,
	.fallocate = serve_fallocate,
	.ioctl = serve_ioctl,
};

/* The kernel reads 128 KiB ahead unless root says more (K-156). */
static void raise_read_ahead(const struct mount *mount)
{
	struct stat stat;
	char path[64];
	FILE *f;

	if (geteuid() || lstat(mount->where, &stat))
		return;
	snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major(stat.st_dev),
		 minor(stat.st_dev));
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "%d\n", READ_AHEAD_KB);
	fclose(f);
}

static void *run_raiser(void *arg)
{
	raise_read_ahead(arg);
	return NULL;
}

int mount_serve(struct mount *mount)
{
	pthread_t raiser;

	if (readers_start(mount))
		return -EAGAIN;
	/* It looks at the mount, so the readers must serve it. */
	if (!pthread_create(&raiser, NULL, run_raiser, mount))
		pthread_detach(raiser);
	while (sem_wait(&mount->ended))
		continue;
	readers_end(mount);
	return 0;
}

void mount_stop(struct mount *mount)
{
	struct fuse_session *session = mount->session;

	atomic_store(&mount->stopping, true);
	if (session)
		fuse_session_exit(session);
	sem_post(&mount->ended);
}
