/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a directory tree as an AFS volume dump for `vos restore`. With it the tests put files,
 * with a root directory that anyone may read, into a real OpenAFS server without a cache manager.
 *
 * usage: make_dump NAME VOLUME_ID DIRECTORY [RIGHTS] > DUMP
 *
 * RIGHTS is what anyone may do in all directories, 9 (read and list) by default.
 * Directories are odd vnodes, files and symlinks even ones; the root is vnode 1, unique 1. Other
 * kinds of files are an error. All names are held in memory, file data are not.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

enum {
	PAGE = 2048,
	SLOT = 32,
	PAGE_SLOTS = PAGE / SLOT,
	FIRST_SLOT = 13, /* of page 0: the header, allocation map and hash table precede it */
	HASH_OFFSET = 160,
	MAP_OFFSET = 32,
	MAP_PAGES = 128,
	ACL_BYTES = 192,
};

struct node {
	char *path;
	char *name;
	struct stat st;
	uint32_t vnode;
	uint32_t unique;
	uint32_t parent; /* index in nodes; the root is its own */
	uint32_t subdirs;
	unsigned char *dir; /* the directory's pages */
	uint32_t pages;
};

static struct node *nodes;
static uint32_t node_count;
static uint32_t next_dir = 1, next_file = 2, next_unique = 1;

static void put16(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)(v >> 8);
	p[1] = (unsigned char)v;
}

static void put32(unsigned char *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static uint32_t get16(const unsigned char *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void out(const void *buf, size_t len)
{
	if (fwrite(buf, 1, len, stdout) != len)
		err(1, "cannot write the dump");
}

static void out8(uint32_t v)
{
	unsigned char b = (unsigned char)v;

	out(&b, 1);
}

static void out16(uint32_t v)
{
	unsigned char b[2];

	put16(b, v);
	out(b, sizeof(b));
}

static void out32(uint32_t v)
{
	unsigned char b[4];

	put32(b, v);
	out(b, sizeof(b));
}

static void tag8(char tag, uint32_t v)
{
	out8((unsigned char)tag);
	out8(v);
}

static void tag16(char tag, uint32_t v)
{
	out8((unsigned char)tag);
	out16(v);
}

static void tag32(char tag, uint32_t v)
{
	out8((unsigned char)tag);
	out32(v);
}

static void tag_text(char tag, const char *text)
{
	out8((unsigned char)tag);
	out(text, strlen(text) + 1);
}

static unsigned int name_bucket(const char *name)
{
	uint32_t h = 0, t;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		h = h * 173 + *p;
	t = h & 127;
	return t == 0 || h < 0x80000000u ? t : 128 - t;
}

/* Appends an empty page. Only the first one has the map and the hash table. */
static void dir_grow(struct node *d)
{
	uint32_t reserved = d->pages ? 1 : FIRST_SLOT;
	unsigned char *page;

	if (d->pages == MAP_PAGES)
		errx(1, "%s: too many names for a test volume", d->path);
	d->dir = realloc(d->dir, (size_t)(d->pages + 1) * PAGE);
	if (!d->dir)
		err(1, "%s", d->path);
	page = d->dir + (size_t)d->pages * PAGE;
	memset(page, 0, PAGE);
	put16(page + 2, 1234);
	page[4] = (unsigned char)(PAGE_SLOTS - reserved);
	for (uint32_t i = 0; i < reserved; i++)
		page[5 + i / 8] |= (unsigned char)(1u << (i % 8));
	if (!d->pages)
		memset(page + MAP_OFFSET, PAGE_SLOTS, MAP_PAGES);
	d->dir[MAP_OFFSET + d->pages] = (unsigned char)(PAGE_SLOTS - reserved);
	d->pages++;
	put16(d->dir, d->pages);
}

/* The lowest run of n free slots of a page, or 0. */
static uint32_t page_find(const unsigned char *page, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 1; i < PAGE_SLOTS; i++) {
		run = page[5 + i / 8] & (1u << (i % 8)) ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return 0;
}

static void dir_insert(struct node *d, const char *name, uint32_t vnode, uint32_t unique)
{
	uint32_t n = 1 + (uint32_t)((strlen(name) + 1 + 15) / 32), slot = 0, page = 0;
	unsigned char *bucket, *entry;

	for (;; page++) {
		if (page == d->pages)
			dir_grow(d);
		if (d->dir[MAP_OFFSET + page] >= n)
			slot = page_find(d->dir + (size_t)page * PAGE, n);
		if (slot)
			break;
	}
	for (uint32_t i = slot; i < slot + n; i++)
		d->dir[(size_t)page * PAGE + 5 + i / 8] |= (unsigned char)(1u << (i % 8));
	d->dir[MAP_OFFSET + page] = (unsigned char)(d->dir[MAP_OFFSET + page] - n);
	bucket = d->dir + HASH_OFFSET + 2 * name_bucket(name);
	entry = d->dir + (size_t)page * PAGE + (size_t)slot * SLOT;
	entry[0] = 1;
	put16(entry + 2, get16(bucket));
	put32(entry + 4, vnode);
	put32(entry + 8, unique);
	memcpy(entry + 12, name, strlen(name));
	put16(bucket, page * PAGE_SLOTS + slot);
}

static uint32_t node_add(uint32_t parent, const char *path, const char *name)
{
	struct node *n;

	nodes = realloc(nodes, (node_count + 1) * sizeof(*nodes));
	if (!nodes)
		err(1, "%s", path);
	n = &nodes[node_count];
	*n = (struct node){ .parent = parent, .path = strdup(path), .name = strdup(name) };
	if (!n->path || !n->name || lstat(path, &n->st))
		err(1, "%s", path);
	if (!S_ISDIR(n->st.st_mode) && !S_ISREG(n->st.st_mode) && !S_ISLNK(n->st.st_mode))
		errx(1, "%s: not a file, a directory or a symlink", path);
	if (S_ISDIR(n->st.st_mode)) {
		n->vnode = next_dir;
		next_dir += 2;
	} else {
		n->vnode = next_file;
		next_file += 2;
	}
	n->unique = next_unique++;
	return node_count++;
}

/* Fills the directory at this index and all below it. Nodes may move meanwhile. */
static void scan(uint32_t self)
{
	struct dirent **list;
	uint32_t parent = nodes[self].parent;
	int n = scandir(nodes[self].path, &list, NULL, alphasort);

	if (n < 0)
		err(1, "%s", nodes[self].path);
	dir_insert(&nodes[self], ".", nodes[self].vnode, nodes[self].unique);
	dir_insert(&nodes[self], "..", nodes[parent].vnode, nodes[parent].unique);
	for (int i = 0; i < n; i++) {
		char *path;
		uint32_t child;

		if (strcmp(list[i]->d_name, ".") && strcmp(list[i]->d_name, "..")) {
			if (asprintf(&path, "%s/%s", nodes[self].path, list[i]->d_name) < 0)
				err(1, "%s", nodes[self].path);
			child = node_add(self, path, list[i]->d_name);
			dir_insert(&nodes[self], list[i]->d_name, nodes[child].vnode,
				   nodes[child].unique);
			if (S_ISDIR(nodes[child].st.st_mode)) {
				nodes[self].subdirs++;
				scan(child);
			}
			free(path);
		}
		free(list[i]);
	}
	free(list);
}

static uint32_t anyone = 9;

/* Administrators have all rights. */
static void out_acl(void)
{
	const uint32_t words[] = { 36, 1, 2, 2, 0, (uint32_t)-204, 127, (uint32_t)-101, anyone };
	unsigned char acl[ACL_BYTES] = { 0 };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put32(acl + 4 * i, words[i]);
	out8('A');
	out(acl, sizeof(acl));
}

static void out_length(uint64_t len)
{
	if (len >> 32) {
		tag32('h', (uint32_t)(len >> 32));
		out32((uint32_t)len);
	} else {
		tag32('f', (uint32_t)len);
	}
}

static void out_file(const struct node *n)
{
	static char buf[1 << 20];
	int fd = open(n->path, O_RDONLY | O_CLOEXEC);
	uint64_t left = (uint64_t)n->st.st_size;

	if (fd < 0)
		err(1, "%s", n->path);
	while (left) {
		ssize_t got = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));

		if (got <= 0)
			err(1, "%s: the file has become shorter", n->path);
		out(buf, (size_t)got);
		left -= (uint64_t)got;
	}
	close(fd);
}

static void out_symlink(const struct node *n)
{
	char text[1025];
	ssize_t len = readlink(n->path, text, sizeof(text));

	if (len < 0 || len != n->st.st_size)
		err(1, "%s", n->path);
	out(text, (size_t)len);
}

static void out_node(const struct node *n)
{
	uint32_t mtime = (uint32_t)n->st.st_mtime;
	int kind = S_ISDIR(n->st.st_mode) ? 2 : S_ISLNK(n->st.st_mode) ? 3 : 1;

	out8(3);
	out32(n->vnode);
	out32(n->unique);
	tag8('t', (uint32_t)kind);
	tag16('l', kind == 2 ? 2 + n->subdirs : 1);
	tag32('v', 1);
	tag32('m', mtime);
	tag32('a', 0);
	tag32('o', 0);
	tag16('b', n->st.st_mode & 07777);
	tag32('p', n == nodes ? 0 : nodes[n->parent].vnode);
	tag32('s', mtime);
	if (kind == 2) {
		out_acl();
		out_length((uint64_t)n->pages * PAGE);
		out(n->dir, (size_t)n->pages * PAGE);
	} else {
		out_length((uint64_t)n->st.st_size);
		if (kind == 3)
			out_symlink(n);
		else
			out_file(n);
	}
}

static void out_volume(const char *name, uint32_t id, uint32_t blocks)
{
	uint32_t now = (uint32_t)nodes[0].st.st_mtime;

	out8(1);
	out32(0xb3a11322);
	out32(1);
	tag32('v', id);
	tag_text('n', name);
	tag16('t', 2);
	out32(0);
	out32(now);
	out8(2);
	tag32('i', id);
	tag32('v', 1);
	tag_text('n', name);
	tag8('s', 1);
	tag8('b', 1);
	tag32('u', next_unique + 1);
	tag8('t', 0);
	tag32('p', id);
	tag32('c', 0);
	tag32('q', 0);
	tag32('m', 0);
	tag32('d', blocks);
	tag32('f', node_count);
	tag32('a', 0);
	tag32('o', 0);
	tag32('C', now);
	tag32('A', now);
	tag32('U', now);
	tag32('E', 0);
	tag32('B', 0);
	tag_text('O', "");
	tag_text('M', "");
	tag16('W', 7);
	for (int i = 0; i < 7; i++)
		out32(0);
	tag32('D', now);
	tag32('Z', 0);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 0;
	uint32_t id;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: make_dump NAME VOLUME_ID DIRECTORY [RIGHTS] > DUMP\n");
		return 2;
	}
	if (argc == 5)
		anyone = (uint32_t)strtoul(argv[4], NULL, 0);
	id = (uint32_t)strtoul(argv[2], NULL, 0);
	node_add(0, argv[3], "");
	if (!S_ISDIR(nodes[0].st.st_mode))
		errx(1, "%s: not a directory", argv[3]);
	scan(0);
	for (uint32_t i = 0; i < node_count; i++)
		bytes += (uint64_t)nodes[i].st.st_size + PAGE;
	out_volume(argv[1], id, (uint32_t)(bytes / 1024));
	/*
	 * All directories precede all files, each kind in ascending order, as they were numbered.
	 */
	for (uint32_t i = 0; i < node_count; i++)
		if (nodes[i].vnode & 1)
			out_node(&nodes[i]);
	for (uint32_t i = 0; i < node_count; i++)
		if (!(nodes[i].vnode & 1))
			out_node(&nodes[i]);
	out8(4);
	out32(0x3a214b6e);
	if (fflush(stdout) || ferror(stdout))
		err(1, "cannot write the dump");
	return 0;
}
