/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of directories. The thread that asks for the items does the next piece of work itself if no other
 * thread has begun it; the others work ahead of it, as long as not too many names wait.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "program/message.h"
#include "afscp/place.h"
#include "afscp/tree.h"

#define THREADS 8
#define AHEAD_MOST \
	200000 /* names that were read and not shown, besides those of the present directory */
#define DEPTH_MOST 1536

enum node_state {
	NODE_WAITS,
	NODE_LISTING,
	NODE_LISTED, /* attributes are asked for */
	NODE_READ,
	NODE_FAILED
};

/* A directory. The lock of the tree covers what changes. */
struct node {
	struct node *next; /* of those that wait, or are listed */
	rxafs_object *object;
	enum node_state state;
	bool dropped, queued, failed;
	struct tree_list list;
	size_t begun, done;	/* names whose attributes were asked for, and are there */
	struct node **children; /* by name; NULL: no directory, or not to be entered */
	struct attempt *failure;
	unsigned depth;
	bool mount; /* the root of a volume behind a mount point */
};

/* A directory that is shown. */
struct frame {
	struct frame *above;
	struct node *node;
	size_t at, path_length;
	bool ended;
};

struct tree {
	struct run *run;
	struct tree_options options;
	const char *label; /* of the root, for messages while servers are away */
	char *path;	   /* of the item at hand */
	size_t path_room, path_length;
	struct frame *top;
	struct node *pending; /* to be entered next */
	struct fid_set entered;

	pthread_mutex_t lock; /* of what follows, and of nodes */
	pthread_cond_t changed;
	struct node *waiting; /* a stack: what is shown next is on top */
	struct node *listed;  /* with names whose attributes were not asked for */
	size_t ahead;	      /* names of nodes that were read and not shown */
	bool ending;
	pthread_t threads[THREADS];
	unsigned thread_count;
};

/* ---- directories that were entered ---- */

static uint64_t hash_entered_fid(const struct rxafs_fid *fid)
{
	uint64_t h = ((uint64_t)fid->vnode << 32 | fid->unique) * 0x9e3779b97f4a7c15u;

	return (h ^ h >> 29 ^ ((uint64_t)fid->volume << 16 ^ fid->cell)) * 0xbf58476d1ce4e5b9u;
}

static struct rxafs_fid *find_fid_slot(const struct fid_set *set, const struct rxafs_fid *fid)
{
	size_t at = (size_t)(hash_entered_fid(fid) >> 20) & (set->room - 1);

	while (set->list[at].vnode && !rxafs_fid_same(&set->list[at], fid))
		at = (at + 1) & (set->room - 1);
	return &set->list[at];
}

static int grow_set(struct fid_set *set)
{
	struct fid_set more = {.room = set->room ? 2 * set->room : 256, .count = set->count};

	more.list = calloc(more.room, sizeof(*more.list));
	if (!more.list)
		return -1;
	for (size_t i = 0; i < set->room; i++)
		if (set->list[i].vnode)
			*find_fid_slot(&more, &set->list[i]) = set->list[i];
	free(set->list);
	*set = more;
	return 0;
}

int fid_set_add(struct fid_set *set, const struct rxafs_fid *fid)
{
	struct rxafs_fid *slot;

	if (2 * set->count >= set->room && grow_set(set) < 0)
		return -1;
	slot = find_fid_slot(set, fid);
	if (slot->vnode)
		return 1;
	*slot = *fid;
	set->count++;
	return 0;
}

void fid_set_free(struct fid_set *set)
{
	free(set->list);
	*set = (struct fid_set){0};
}

/* ---- nodes ---- */

static struct node *new_node(rxafs_object *object, unsigned depth)
{
	struct node *node = calloc(1, sizeof(*node));

	if (node) {
		node->object = object;
		node->depth = depth;
	}
	return node;
}

/* Those below that were not taken over are freed as well. */
static void free_tree_node(struct node *node)
{
	for (size_t i = 0; node->children && i < node->list.names.count; i++)
		assert(!node->children[i]);
	rxafs_release(node->object);
	rxafs_free_names(&node->list.names);
	free(node->list.attributes);
	free(node->list.results);
	free(node->children);
	free(node->failure);
	free(node);
}

/* Nobody will show the node. It is freed by whoever has it in hand, or here. */
static void drop_node(struct tree *tree, struct node *node)
{
	assert(mutex_is_held(&tree->lock));
	node->dropped = true;
	if (node->queued || node->state == NODE_LISTING || node->state == NODE_LISTED)
		return;
	if (node->state == NODE_READ)
		tree->ahead -= node->list.names.count;
	for (size_t i = 0; node->children && i < node->list.names.count; i++)
		if (node->children[i]) {
			drop_node(tree, node->children[i]);
			node->children[i] = NULL;
		}
	free_tree_node(node);
}

/* Whether the directory with that name is to be entered. */
static bool is_entered(const struct tree *tree, const struct node *node, size_t i)
{
	const struct rxafs_attributes *a = &node->list.attributes[i];

	if (node->depth >= tree->options.depth || node->depth > DEPTH_MOST)
		return false;
	if (!a->kind)
		return node->list.results[i] == 0 && node->list.names.list[i].fid.vnode & 1;
	return node->list.results[i] == 0 && a->kind == RXAFS_DIRECTORY &&
	       (tree->options.enter_mounts || !a->mount_point);
}

/* The nodes of the directories in one that was read, on top of the stack. */
static void add_children(struct tree *tree, struct node *node)
{
	struct rxafs_request request = session_request(tree->run);

	for (size_t i = node->list.names.count; i-- > 0;) {
		struct rxafs_attributes plain = {.kind = RXAFS_DIRECTORY,
						 .fid = node->list.names.list[i].fid};
		const struct rxafs_attributes *a = &node->list.attributes[i];
		rxafs_object *object;

		if (!is_entered(tree, node, i))
			continue;
		if (rxafs_take_object(node->object, &request, &node->list.names.list[i],
				      a->kind ? a : &plain, &object) < 0)
			continue;
		node->children[i] = new_node(object, node->depth + 1);
		if (!node->children[i])
			rxafs_release(object);
		else
			node->children[i]->mount = a->mount_point;
	}
}

/* The node has all its attributes. With the lock. */
static void finish_node(struct tree *tree, struct node *node)
{
	assert(mutex_is_held(&tree->lock));
	if (!node->failed) {
		pthread_mutex_unlock(&tree->lock);
		add_children(tree, node);
		pthread_mutex_lock(&tree->lock);
	}
	node->state = node->failed ? NODE_FAILED : NODE_READ;
	if (node->state == NODE_READ)
		tree->ahead += node->list.names.count;
	for (size_t i = node->list.names.count; i-- > 0 && node->state == NODE_READ;)
		if (node->children[i]) {
			node->children[i]->next = tree->waiting;
			node->children[i]->queued = true;
			tree->waiting = node->children[i];
		}
	if (node->dropped)
		drop_node(tree, node);
	pthread_cond_broadcast(&tree->changed);
}

/* ---- work ---- */

static int compare_tree_names(const void *a, const void *b)
{
	return strcmp(((const struct rxafs_name *)a)->text, ((const struct rxafs_name *)b)->text);
}

/* It cannot be read. Without memory for the reason, that is the reason. */
static void fail_node(struct node *node, const struct attempt *attempt)
{
	node->failed = true;
	if (!node->failure && (node->failure = malloc(sizeof(*attempt))))
		*node->failure = *attempt;
}

/* The names. *attempt is that of a failure. */
static bool list_node(struct tree *tree, struct node *node, struct attempt *attempt)
{
	struct tree_list *list = &node->list;
	size_t count;

	while (attempt_again(attempt,
			     rxafs_list_names(node->object, &attempt->request, &list->names)))
		;
	if (attempt->value < 0 &&
	    !(tree->options.may_go && (attempt->value == -ENOENT || attempt->value == -ESTALE)))
		return false;
	count = list->names.count;
	if (count)
		qsort(list->names.list, count, sizeof(*list->names.list), compare_tree_names);
	list->attributes = calloc(count + 1, sizeof(*list->attributes));
	list->results = calloc(count + 1, sizeof(*list->results));
	node->children = calloc(count + 1, sizeof(struct node *));
	if (list->attributes && list->results && node->children)
		return true;
	list->names.count = 0;
	attempt->later = true;
	attempt_again(attempt, -ENOMEM);
	return false;
}

/* List a node that was taken off the stack. With the lock, which is released meanwhile. */
static void work_on_list(struct tree *tree, struct node *node)
{
	struct attempt attempt;
	bool good;

	node->state = NODE_LISTING;
	pthread_mutex_unlock(&tree->lock);
	attempt = attempt_begin(tree->run, CHANGE_NONE, tree->label);
	attempt.about = node->object;
	attempt.later = true;
	good = list_node(tree, node, &attempt);
	pthread_mutex_lock(&tree->lock);
	if (!good) {
		fail_node(node, &attempt);
		finish_node(tree, node);
		return;
	}
	node->state = NODE_LISTED;
	if ((tree->options.names_only && !tree->options.enter_mounts) || !node->list.names.count) {
		node->begun = node->done = node->list.names.count;
		finish_node(tree, node);
		return;
	}
	node->next = tree->listed;
	tree->listed = node;
	pthread_cond_broadcast(&tree->changed);
}

static void unlist_node(struct tree *tree, struct node *node)
{
	struct node **at = &tree->listed;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
}

/* The attributes of the next names. With the lock, which is released meanwhile. */
static void work_on_batch(struct tree *tree, struct node *node)
{
	struct tree_list *list = &node->list;
	size_t from = node->begun, left = list->names.count - from;
	unsigned count = left < RXAFS_BATCH ? (unsigned)left : RXAFS_BATCH;
	struct attempt attempt;

	node->begun += count;
	if (node->begun == list->names.count)
		unlist_node(tree, node);
	pthread_mutex_unlock(&tree->lock);
	attempt = attempt_begin(tree->run, CHANGE_NONE, tree->label);
	attempt.about = node->object;
	attempt.later = true;
	while (attempt_again(&attempt,
			     rxafs_fetch_attributes(node->object, &attempt.request,
						    list->names.list + from, count,
						    list->attributes + from, list->results + from)))
		;
	pthread_mutex_lock(&tree->lock);
	if (attempt.value < 0)
		fail_node(node, &attempt);
	node->done += count;
	if (node->done == list->names.count)
		finish_node(tree, node);
}

/* The next node of the stack. NULL: none. */
static struct node *take_waiting(struct tree *tree)
{
	struct node *node;

	while ((node = tree->waiting)) {
		tree->waiting = node->next;
		node->queued = false;
		if (!node->dropped)
			return node;
		drop_node(tree, node);
	}
	return NULL;
}

static void *work_ahead(void *arg)
{
	struct tree *tree = arg;
	struct node *node;

	pthread_mutex_lock(&tree->lock);
	while (!tree->ending) {
		if (tree->listed)
			work_on_batch(tree, tree->listed);
		else if (tree->ahead < AHEAD_MOST && (node = take_waiting(tree)))
			work_on_list(tree, node);
		else
			pthread_cond_wait(&tree->changed, &tree->lock);
	}
	pthread_mutex_unlock(&tree->lock);
	return NULL;
}

/* Take a certain node off the stack. */
static void take_node(struct tree *tree, struct node *node)
{
	struct node **at = &tree->waiting;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->queued = false;
}

/* Until the node is read, by this thread if no other has begun. */
static void read_node(struct tree *tree, struct node *node)
{
	pthread_mutex_lock(&tree->lock);
	while (node->state != NODE_READ && node->state != NODE_FAILED) {
		if (node->state == NODE_WAITS) {
			take_node(tree, node);
			work_on_list(tree, node);
		} else if (node->state == NODE_LISTED && node->begun < node->list.names.count) {
			work_on_batch(tree, node);
		} else {
			pthread_cond_wait(&tree->changed, &tree->lock);
		}
	}
	/* It is shown from now on. */
	if (node->state == NODE_READ) {
		tree->ahead -= node->list.names.count;
		pthread_cond_broadcast(&tree->changed);
	}
	pthread_mutex_unlock(&tree->lock);
}

/* ---- items ---- */

/* The path becomes that of a name in the directory whose path has `length` bytes. */
static bool set_path(struct tree *tree, size_t length, const char *name)
{
	size_t more = strlen(name);
	char end = length ? tree->path[length - 1] : 0;

	if (length + more + 2 > tree->path_room) {
		size_t room = 2 * (length + more + 2);
		char *path = realloc(tree->path, room);

		if (!path) {
			tools_error("no memory");
			return false;
		}
		tree->path = path;
		tree->path_room = room;
	}
	if (end != '/' && end != ':')
		tree->path[length++] = '/';
	memcpy(tree->path + length, name, more + 1);
	tree->path_length = length + more;
	return true;
}

static void release_shown(struct tree *tree, struct node *node)
{
	pthread_mutex_lock(&tree->lock);
	for (size_t i = 0; node->children && i < node->list.names.count; i++)
		if (node->children[i]) {
			drop_node(tree, node->children[i]);
			node->children[i] = NULL;
		}
	pthread_mutex_unlock(&tree->lock);
	free_tree_node(node);
}

/* Whether the directory was entered before; of a mount point, the one behind it. */
static bool was_entered(struct tree *tree, struct node *node)
{
	struct rxafs_request request = session_request(tree->run);
	struct rxafs_attributes a;

	return rxafs_getattr(node->object, &request, &a) == 0 &&
	       fid_set_add(&tree->entered, &a.fid) > 0;
}

/* Report why a directory is not shown. False: it is not worth a word. */
static bool report_node(struct tree *tree, struct node *node)
{
	if (node->depth > DEPTH_MOST)
		tools_error("%s: more than %d directories deep", tree->path, DEPTH_MOST);
	else if (node->failure)
		attempt_complain_of(node->failure, tree->path);
	else if (node->state == NODE_FAILED)
		tools_error("%s: no memory", tree->path);
	else if (node->mount)
		return false;
	else
		tools_error("%s: skipped: the directory was entered before; its server is damaged",
			    tree->path);
	return true;
}

/* The pending node is entered; its path is set. False: that is no event. */
static bool enter_pending(struct tree *tree, struct tree_item *item)
{
	struct node *node = tree->pending;
	struct frame *frame = calloc(1, sizeof(*frame));
	bool good;

	tree->pending = NULL;
	read_node(tree, node);
	good = frame && node->depth <= DEPTH_MOST && node->state == NODE_READ &&
	       !was_entered(tree, node);
	*item = (struct tree_item){.event = TREE_FAILED, .path = tree->path, .depth = node->depth};
	if (!good) {
		bool told = report_node(tree, node);

		release_shown(tree, node);
		free(frame);
		return told;
	}
	*frame = (struct frame){.above = tree->top, .node = node, .path_length = tree->path_length};
	tree->top = frame;
	item->event = TREE_ENTER;
	item->directory = node->object;
	item->list = &node->list;
	return true;
}

static void leave_top(struct tree *tree)
{
	struct frame *frame = tree->top;

	tree->top = frame->above;
	release_shown(tree, frame->node);
	free(frame);
}

/* All names of the directory on top were shown. */
static void show_end(struct tree *tree, struct tree_item *item)
{
	struct frame *frame = tree->top;

	/* It goes with the next call. */
	frame->ended = true;
	tree->path[frame->path_length] = 0;
	tree->path_length = frame->path_length;
	*item = (struct tree_item){.event = TREE_LEAVE,
				   .path = tree->path,
				   .depth = frame->node->depth,
				   .directory = frame->node->object};
}

/* The next name of the directory on top. False: no memory. */
static bool show_name(struct tree *tree, struct tree_item *item)
{
	struct frame *frame = tree->top;
	struct node *node = frame->node;
	size_t at = frame->at++;

	if (!set_path(tree, frame->path_length, node->list.names.list[at].text))
		return false;
	*item = (struct tree_item){.event = TREE_ENTRY,
				   .path = tree->path,
				   .depth = node->depth + 1,
				   .directory = node->object,
				   .name = &node->list.names.list[at],
				   .attributes = &node->list.attributes[at],
				   .result = node->list.results[at]};
	tree->pending = node->children[at];
	node->children[at] = NULL;
	return true;
}

int tree_next(struct tree *tree, struct tree_item *item)
{
	while (!atomic_load(&tree->run->interrupted)) {
		struct frame *frame = tree->top;

		if (tree->pending) {
			if (enter_pending(tree, item))
				return 1;
		} else if (!frame) {
			return 0;
		} else if (frame->ended) {
			leave_top(tree);
		} else if (frame->at < frame->node->list.names.count) {
			return show_name(tree, item);
		} else {
			show_end(tree, item);
			return 1;
		}
	}
	/* The signal came while this thread waited for no answer. */
	if (!atomic_exchange(&tree->run->told, true))
		tools_error("%s: interrupted", tree->path);
	return 0;
}

static void drop_pending(struct tree *tree)
{
	if (!tree->pending)
		return;
	pthread_mutex_lock(&tree->lock);
	drop_node(tree, tree->pending);
	pthread_mutex_unlock(&tree->lock);
	tree->pending = NULL;
}

struct tree *tree_open(struct run *run, rxafs_object *root, const char *label,
		       const struct tree_options *options)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct node *node = tree ? new_node(rxafs_hold(root), 0) : NULL;

	if (!node || !(tree->path = strdup(label))) {
		tools_error("no memory");
		if (node)
			free_tree_node(node);
		free(tree);
		return NULL;
	}
	tree->run = run;
	tree->label = label;
	tree->options = *options;
	tree->path_length = strlen(label);
	tree->path_room = tree->path_length + 1;
	pthread_mutex_init(&tree->lock, NULL);
	pthread_cond_init(&tree->changed, NULL);
	node->queued = true;
	tree->waiting = tree->pending = node;
	while (tree->thread_count < THREADS &&
	       pthread_create(&tree->threads[tree->thread_count], NULL, work_ahead, tree) == 0)
		tree->thread_count++;
	return tree;
}

void tree_close(struct tree *tree)
{
	struct node *node;

	pthread_mutex_lock(&tree->lock);
	tree->ending = true;
	pthread_cond_broadcast(&tree->changed);
	pthread_mutex_unlock(&tree->lock);
	for (unsigned i = 0; i < tree->thread_count; i++)
		pthread_join(tree->threads[i], NULL);
	drop_pending(tree);
	while (tree->top)
		leave_top(tree);
	pthread_mutex_lock(&tree->lock);
	while ((node = take_waiting(tree)))
		drop_node(tree, node);
	while ((node = tree->listed)) {
		tree->listed = node->next;
		node->state = NODE_FAILED;
		drop_node(tree, node);
	}
	pthread_mutex_unlock(&tree->lock);
	fid_set_free(&tree->entered);
	pthread_cond_destroy(&tree->changed);
	pthread_mutex_destroy(&tree->lock);
	free(tree->path);
	free(tree);
}
