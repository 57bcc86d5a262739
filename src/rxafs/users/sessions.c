/* SPDX-License-Identifier: BSD-2-Clause */
/* Which session a process is in. */
#include "rxafs/users/sessions.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/held.h"

#define THREADS_KEPT 256u  /* whose session is known */
#define PARENTS_MOST 4096u /* a chain of processes that is longer changes while it is read */
#define OF_USER_MOST \
	256u /* sessions that one user may have begun; they hold files of this process open */
#define FIRST_LOOK 16u /* sessions, from which on those without processes are looked for */

struct session {
	struct session *next;
	rxafs_user *user;
	uid_t owner;	  /* who has begun it */
	uint32_t login;	  /* number of the login session; 0: of a command */
	pid_t leader;	  /* of a command */
	int leader_alive; /* its /proc/PID/stat: it cannot be read once the process is gone */
	bool alive;	  /* found while processes are looked at */
};

/*
 * A thread and what was found. Its number may be used again, but its open file in /proc is that of this thread only.
 */
struct found {
	pid_t thread; /* 0: nothing */
	int stat;
	uint64_t generation; /* of the sessions */
	struct session *session;
};

struct sessions {
	rxafs_client *client;
	pthread_mutex_t lock; /* covers all but `count` */
	atomic_uint count;
	uint64_t generation; /* changes with the list, after which no entry of `known` is used */
	struct session *list;
	bool over;	  /* no further ones */
	unsigned look_at; /* sessions, when those without processes are looked for again */
	struct found known[THREADS_KEPT];
};

struct sessions *sessions_create(rxafs_client *client)
{
	struct sessions *sessions = calloc(1, sizeof *sessions);

	if (!sessions)
		return NULL;
	pthread_mutex_init(&sessions->lock, NULL);
	sessions->client = client;
	sessions->look_at = FIRST_LOOK;
	return sessions;
}

static void free_session(struct session *session)
{
	if (!session->login)
		close(session->leader_alive);
	rxafs_put_user(session->user);
	free(session);
}

void sessions_stop(struct sessions *sessions)
{
	struct session *one;

	if (!sessions)
		return;
	pthread_mutex_lock(&sessions->lock);
	sessions->over = true;
	sessions->generation++;
	atomic_store(&sessions->count, 0);
	while ((one = sessions->list)) {
		sessions->list = one->next;
		free_session(one);
	}
	pthread_mutex_unlock(&sessions->lock);
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	assert(!sessions->list);
	for (unsigned i = 0; i < THREADS_KEPT; i++)
		if (sessions->known[i].thread)
			close(sessions->known[i].stat);
	pthread_mutex_destroy(&sessions->lock);
	free(sessions);
}

/* -- processes -------------------------------------------------------------------------------- */

static bool is_alive(int stat)
{
	char byte;

	return pread(stat, &byte, 1, 0) == 1;
}

static int open_stat(pid_t thread)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Parent and start of a process, in ticks since the boot of the machine. */
static bool read_stat(int stat, pid_t *parent, unsigned long long *started)
{
	char text[1024], *end;
	ssize_t length = pread(stat, text, sizeof text - 1, 0);

	if (length <= 0)
		return false;
	text[length] = '\0';
	/* The name may contain any character. */
	end = strrchr(text, ')');
	return end &&
	       sscanf(end + 1,
		      " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		      "%*d %llu",
		      parent, started) == 2;
}

/* The number of a thread's login session; 0: it has none. */
static uint32_t read_login_session(const char *process)
{
	unsigned long number = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/sessionid", process);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &number) != 1 || number >= UINT32_MAX)
		number = 0;
	fclose(f);
	return (uint32_t)number;
}

static uint32_t login_session_of(pid_t thread)
{
	char text[16];

	snprintf(text, sizeof text, "%d", (int)thread);
	return read_login_session(text);
}

/* -- the session of a thread ---------------------------------------------------------------- */

static struct session *find_login(const struct sessions *sessions, uint32_t number)
{
	struct session *one = sessions->list;

	assert(mutex_is_held((pthread_mutex_t *)&sessions->lock));
	while (one && one->login != number)
		one = one->next;
	return one;
}

/* While the leader lives, nobody else has its number. */
static struct session *find_led_by(const struct sessions *sessions, pid_t leader)
{
	struct session *one = sessions->list;

	assert(mutex_is_held((pthread_mutex_t *)&sessions->lock));
	while (one && (one->login || one->leader != leader || !is_alive(one->leader_alive)))
		one = one->next;
	return one;
}

/*
 * The command above a thread. A parent is older than its child: else its number was used again since the child was looked at.
 * Orphans become children of the leader, which asks the kernel for that.
 */
static struct session *find_above(const struct sessions *sessions, pid_t thread, int stat)
{
	unsigned long long started, before;
	struct session *session = find_led_by(sessions, thread);
	pid_t parent;

	if (session || !read_stat(stat, &parent, &before))
		return session;
	for (unsigned i = 0; i < PARENTS_MOST && parent > 1; i++) {
		int of_parent;
		bool right;

		session = find_led_by(sessions, parent);
		of_parent = open_stat(parent);
		if (of_parent < 0)
			return NULL;
		right = read_stat(of_parent, &parent, &started) && started <= before;
		close(of_parent);
		if (!right || session)
			return right ? session : NULL;
		before = started;
	}
	return NULL;
}

/* The entry of a thread that is alive and was looked at, or NULL. */
static struct found *look_at_thread(struct sessions *sessions, pid_t thread)
{
	struct found *found = &sessions->known[(unsigned)thread % THREADS_KEPT];
	struct session *session;
	uint32_t login;

	if (found->thread == thread && is_alive(found->stat)) {
		if (found->generation == sessions->generation)
			return found;
	} else {
		if (found->thread)
			close(found->stat);
		found->stat = open_stat(thread);
		found->thread = found->stat < 0 ? 0 : thread;
		if (!found->thread)
			return NULL;
	}
	session = find_above(sessions, thread, found->stat);
	login = session ? 0 : login_session_of(thread);
	if (login)
		session = find_login(sessions, login);
	/* What was read by number may be of another thread if this one is gone by now. */
	if (!is_alive(found->stat)) {
		close(found->stat);
		found->thread = 0;
		return NULL;
	}
	found->session = session;
	found->generation = sessions->generation;
	return found;
}

rxafs_user *sessions_find(struct sessions *sessions, pid_t thread)
{
	rxafs_user *user = NULL;
	struct found *found;

	if (!atomic_load(&sessions->count) || !thread)
		return NULL;
	pthread_mutex_lock(&sessions->lock);
	found = look_at_thread(sessions, thread);
	if (found && found->session)
		user = rxafs_hold_user(found->session->user);
	pthread_mutex_unlock(&sessions->lock);
	return user;
}

/* -- beginning and end ------------------------------------------------------------------------ */

/* Marks the sessions that have processes. */
static void mark_alive(struct sessions *sessions)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	for (struct session *one = sessions->list; one; one = one->next)
		one->alive = !proc || (!one->login && is_alive(one->leader_alive));
	while (proc && (entry = readdir(proc))) {
		uint32_t number = entry->d_name[0] >= '0' && entry->d_name[0] <= '9'
					  ? read_login_session(entry->d_name)
					  : 0;
		struct session *session = number ? find_login(sessions, number) : NULL;

		if (session)
			session->alive = true;
	}
	if (proc)
		closedir(proc);
}

/* With the lock. */
static void forget_dead(struct sessions *sessions)
{
	struct session **at = &sessions->list, *one;
	unsigned count = 0;

	assert(mutex_is_held(&sessions->lock));
	mark_alive(sessions);
	while ((one = *at)) {
		if (one->alive) {
			count++;
			at = &one->next;
			continue;
		}
		*at = one->next;
		free_session(one);
		sessions->generation++;
	}
	atomic_store(&sessions->count, count);
	sessions->look_at = 2 * count > FIRST_LOOK ? 2 * count : FIRST_LOOK;
}

static void write_session_name(const struct session *session, char text[SESSION_TEXT])
{
	if (session->login)
		snprintf(text, SESSION_TEXT, "login session %u", session->login);
	else
		snprintf(text, SESSION_TEXT, "command %d", (int)session->leader);
}

/* With the lock. */
static bool has_too_many(const struct sessions *sessions, uid_t owner)
{
	unsigned count = 0;

	for (const struct session *one = sessions->list; one; one = one->next)
		count += one->owner == owner;
	return owner && count >= OF_USER_MOST;
}

/* *made: it is new, and not in the list. A negative errno: none. */
static int find_or_make(struct sessions *sessions, uid_t owner, pid_t thread, bool command,
			struct session **made, struct session **out)
{
	uint32_t login = command ? 0 : login_session_of(thread);
	struct session *session = command ? find_led_by(sessions, thread)
				  : login ? find_login(sessions, login)
					  : NULL;

	*made = NULL;
	*out = session;
	if (session)
		return 0;
	if (sessions->over)
		return -ESHUTDOWN;
	if (!command && !login)
		return -ENODEV;
	if (has_too_many(sessions, owner)) {
		forget_dead(sessions);
		if (has_too_many(sessions, owner))
			return -EUSERS;
	}
	session = calloc(1, sizeof *session);
	if (!session || rxafs_create_user(sessions->client, &session->user)) {
		free(session);
		return -ENOMEM;
	}
	session->owner = owner;
	session->login = login;
	session->leader = thread;
	session->leader_alive = command ? open_stat(thread) : -1;
	if (command && session->leader_alive < 0) {
		rxafs_put_user(session->user);
		free(session);
		return -ESRCH;
	}
	*made = *out = session;
	return 0;
}

int session_begin(struct sessions *sessions, uid_t owner, pid_t thread, bool command,
		  rxafs_user **user, char text[SESSION_TEXT])
{
	struct session *session, *made;
	int result;

	*user = NULL;
	if (!thread)
		return -ESRCH;
	pthread_mutex_lock(&sessions->lock);
	if (atomic_load(&sessions->count) >= sessions->look_at)
		forget_dead(sessions);
	result = find_or_make(sessions, owner, thread, command, &made, &session);
	if (made) {
		made->next = sessions->list;
		sessions->list = made;
		sessions->generation++;
		atomic_fetch_add(&sessions->count, 1);
	}
	if (!result) {
		*user = rxafs_hold_user(session->user);
		write_session_name(session, text);
	}
	pthread_mutex_unlock(&sessions->lock);
	return result;
}

int session_end(struct sessions *sessions, pid_t thread)
{
	uint32_t login = login_session_of(thread);
	struct session **at = &sessions->list, *session;

	pthread_mutex_lock(&sessions->lock);
	session = login ? find_login(sessions, login) : NULL;
	while (session && *at != session)
		at = &(*at)->next;
	if (session) {
		*at = session->next;
		sessions->generation++;
		atomic_fetch_sub(&sessions->count, 1);
		free_session(session);
	}
	pthread_mutex_unlock(&sessions->lock);
	return session ? 0 : -ENOENT;
}

void sessions_forget_dead(struct sessions *sessions)
{
	if (!atomic_load(&sessions->count))
		return;
	pthread_mutex_lock(&sessions->lock);
	forget_dead(sessions);
	pthread_mutex_unlock(&sessions->lock);
}

bool session_name(struct sessions *sessions, const rxafs_user *user, char text[SESSION_TEXT])
{
	const struct session *session;

	pthread_mutex_lock(&sessions->lock);
	session = sessions->list;
	while (session && session->user != user)
		session = session->next;
	if (session)
		write_session_name(session, text);
	pthread_mutex_unlock(&sessions->lock);
	return session != NULL;
}
