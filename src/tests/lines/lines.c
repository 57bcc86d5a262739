/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of lines, and what code compiled with -fsanitize=thread calls. This file is compiled without. */
#include "tests/lines/lines.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE	   64u
#define LONG_COPY  256u /* bytes; of longer ones, one line in SAMPLE counts */
#define SAMPLE	   16u
#define TABLE_SIZE (1u << 17)
#define MOST_NAMES 512u
#define WRITTEN	   (1u << 31) /* in `holders`: the line was written */

struct site {
	_Atomic(uintptr_t) at;
	_Atomic(uint64_t) reads, writes, transfers;
};

struct line {
	_Atomic(uintptr_t) number; /* address / LINE; 0: not used */
	_Atomic(uint32_t) holders; /* bit for each processor whose cache has it; WRITTEN */
	_Atomic(uint64_t) transfers;
	_Atomic(uint64_t) reads[LINES_PROCESSORS], writes[LINES_PROCESSORS];
	struct site site[LINES_SITES];
};

struct name {
	char text[40];
	uintptr_t at;
	size_t size;
};

static struct line *table;
static _Atomic(bool) counting;
static bool told; /* code of which each access is told was linked */
static _Thread_local int playing = -1;
static struct name names[MOST_NAMES];
static unsigned name_count;

/* -- counting --------------------------------------------------------------------------------- */

int lines_play(int number)
{
	int before = playing;

	playing = number;
	return before;
}

bool lines_told(void)
{
	return told;
}

void lines_start(void)
{
	size_t bytes = TABLE_SIZE * sizeof(*table);

	if (table)
		munmap(table, bytes);
	table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		abort();
	atomic_store(&counting, true);
}

void lines_stop(void)
{
	atomic_store(&counting, false);
}

static struct line *find_line(uintptr_t number)
{
	size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 40) % TABLE_SIZE;

	for (unsigned tries = 0; tries < TABLE_SIZE / 2; tries++, at = (at + 1) % TABLE_SIZE) {
		uintptr_t found = atomic_load_explicit(&table[at].number, memory_order_relaxed);

		if (!found && atomic_compare_exchange_strong(&table[at].number, &found, number))
			return &table[at];
		if (found == number)
			return &table[at];
	}
	abort(); /* the table is too small */
}

static void add_one(_Atomic(uint64_t) *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void count_site(struct line *line, uintptr_t code, bool writes, bool moved)
{
	for (unsigned i = 0; i < LINES_SITES; i++) {
		uintptr_t at = atomic_load_explicit(&line->site[i].at, memory_order_relaxed);

		if (!at && atomic_compare_exchange_strong(&line->site[i].at, &at, code))
			at = code;
		if (at != code)
			continue;
		add_one(writes ? &line->site[i].writes : &line->site[i].reads);
		if (moved)
			add_one(&line->site[i].transfers);
		return;
	}
}

static void touch_line(uintptr_t number, bool writes, uintptr_t code)
{
	struct line *line = find_line(number);
	uint32_t mine = 1u << playing, before;
	bool moved;

	if (writes) {
		before = atomic_exchange(&line->holders, mine | WRITTEN);
		moved = before & ~(mine | WRITTEN);
	} else {
		before = atomic_fetch_or(&line->holders, mine);
		moved = (before & WRITTEN) && !(before & mine);
	}
	add_one(writes ? &line->writes[playing] : &line->reads[playing]);
	if (moved)
		add_one(&line->transfers);
	count_site(line, code, writes, moved);
}

static void touch(const volatile void *at, size_t size, bool writes, uintptr_t code)
{
	uintptr_t first = (uintptr_t)at / LINE, last;

	if (playing < 0 || !size || !atomic_load_explicit(&counting, memory_order_relaxed))
		return;
	last = ((uintptr_t)at + size - 1) / LINE;
	for (uintptr_t n = first; n <= last; n++)
		if (size <= LONG_COPY || n % SAMPLE == 0)
			touch_line(n, writes, code);
}

/* -- what instrumented code calls -------------------------------------------------------------- */

#define CALLER ((uintptr_t)__builtin_return_address(0))

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_vptr_update(void **at, void *value);
void __tsan_vptr_read(void **at);
void __tsan_read_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int byte, size_t size);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
	told = true;
}
void __tsan_func_entry(void *caller)
{
	(void)caller;
}
void __tsan_func_exit(void)
{
}
void __tsan_vptr_update(void **at, void *value)
{
	(void)value;
	touch(at, sizeof(*at), true, CALLER);
}
void __tsan_vptr_read(void **at)
{
	touch(at, sizeof(*at), false, CALLER);
}
void __tsan_read_range(void *at, size_t size)
{
	touch(at, size, false, CALLER);
}
void __tsan_write_range(void *at, size_t size)
{
	touch(at, size, true, CALLER);
}

#define ACCESS(name, size, writes)               \
	void __tsan_##name(void *at);            \
	void __tsan_##name(void *at)             \
	{                                        \
		touch(at, size, writes, CALLER); \
	}
#define ACCESSES(size)                                     \
	ACCESS(read##size, size, false)                    \
	ACCESS(write##size, size, true)                    \
	ACCESS(unaligned_read##size, size, false)          \
	ACCESS(unaligned_write##size, size, true)          \
	ACCESS(volatile_read##size, size, false)           \
	ACCESS(volatile_write##size, size, true)           \
	ACCESS(unaligned_volatile_read##size, size, false) \
	ACCESS(unaligned_volatile_write##size, size, true) \
	ACCESS(read_write##size, size, true)               \
	ACCESS(unaligned_read_write##size, size, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define CHANGE(type, bits, name, builtin)                                            \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order); \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)  \
	{                                                                            \
		(void)order;                                                         \
		touch(at, sizeof(*at), true, CALLER);                                \
		return builtin(at, value, __ATOMIC_SEQ_CST);                         \
	}
/* A failure writes nothing, but the processor has had to own the line. */
#define COMPARE(type, bits, name)                                                                  \
	int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type wanted, int good, \
					 int bad);                                                 \
	int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type wanted, int good, \
					 int bad)                                                  \
	{                                                                                          \
		(void)good;                                                                        \
		(void)bad;                                                                         \
		touch(at, sizeof(*at), true, CALLER);                                              \
		return __atomic_compare_exchange_n(at, expected, wanted, 0, __ATOMIC_SEQ_CST,      \
						   __ATOMIC_SEQ_CST);                              \
	}
#define ATOMIC(type, bits)                                                                \
	type __tsan_atomic##bits##_load(const volatile type *at, int order);              \
	type __tsan_atomic##bits##_load(const volatile type *at, int order)               \
	{                                                                                 \
		(void)order;                                                              \
		touch(at, sizeof(*at), false, CALLER);                                    \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                             \
	}                                                                                 \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order);       \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order)        \
	{                                                                                 \
		(void)order;                                                              \
		touch(at, sizeof(*at), true, CALLER);                                     \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                            \
	}                                                                                 \
	CHANGE(type, bits, exchange, __atomic_exchange_n)                                 \
	CHANGE(type, bits, fetch_add, __atomic_fetch_add)                                 \
	CHANGE(type, bits, fetch_sub, __atomic_fetch_sub)                                 \
	CHANGE(type, bits, fetch_and, __atomic_fetch_and)                                 \
	CHANGE(type, bits, fetch_or, __atomic_fetch_or)                                   \
	CHANGE(type, bits, fetch_xor, __atomic_fetch_xor)                                 \
	CHANGE(type, bits, fetch_nand, __atomic_fetch_nand)                               \
	COMPARE(type, bits, compare_exchange_strong)                                      \
	COMPARE(type, bits, compare_exchange_weak)                                        \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, \
							type wanted, int good, int bad);  \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, \
							type wanted, int good, int bad)   \
	{                                                                                 \
		(void)good;                                                               \
		(void)bad;                                                                \
		touch(at, sizeof(*at), true, CALLER);                                     \
		__atomic_compare_exchange_n(at, &expected, wanted, 0, __ATOMIC_SEQ_CST,   \
					    __ATOMIC_SEQ_CST);                            \
		return expected;                                                          \
	}
ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* -- what it calls of the C library: --wrap ---------------------------------------------------- */

void *__real_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int byte, size_t size);
void *__wrap_memset(void *to, int byte, size_t size);

static void touch_both(void *to, const void *from, size_t size, uintptr_t code)
{
	touch(from, size, false, code);
	touch(to, size, true, code);
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	touch_both(to, from, size, CALLER);
	return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
	touch_both(to, from, size, CALLER);
	return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
	touch(to, size, true, CALLER);
	return __real_memset(to, byte, size);
}

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	touch_both(to, from, size, CALLER);
	return __real_memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
	touch_both(to, from, size, CALLER);
	return __real_memmove(to, from, size);
}

void *__tsan_memset(void *to, int byte, size_t size)
{
	touch(to, size, true, CALLER);
	return __real_memset(to, byte, size);
}

#define WRITES(type, name)                            \
	int __real_pthread_##name(type *at);          \
	int __wrap_pthread_##name(type *at);          \
	int __wrap_pthread_##name(type *at)           \
	{                                             \
		touch(at, sizeof(int), true, CALLER); \
		return __real_pthread_##name(at);     \
	}
WRITES(pthread_mutex_t, mutex_lock)
WRITES(pthread_mutex_t, mutex_trylock)
WRITES(pthread_mutex_t, mutex_unlock)
WRITES(pthread_cond_t, cond_signal)
WRITES(pthread_cond_t, cond_broadcast)

/* -- reports ---------------------------------------------------------------------------------- */

void lines_name(const char *name, const void *at, size_t size)
{
	struct name *n = &names[name_count];

	if (name_count == MOST_NAMES)
		abort();
	name_count++;
	snprintf(n->text, sizeof(n->text), "%s", name);
	n->at = (uintptr_t)at;
	n->size = size;
}

/* All small objects within the line; or else the offset in the one that covers it. */
static void name_line(uintptr_t line, char *text, size_t size)
{
	const struct name *best = NULL;

	text[0] = '\0';
	for (unsigned i = 0; i < name_count; i++) {
		const struct name *n = &names[i];

		if (n->at < line + LINE && line < n->at + n->size &&
		    (!best || n->size < best->size))
			best = n;
	}
	if (best)
		snprintf(text, size, "%s%+ld", best->text, (long)(line - best->at));
}

static bool is_shared(const struct line *line)
{
	uint32_t written = 0, touched = 0;

	for (unsigned i = 0; i < LINES_PROCESSORS; i++) {
		if (atomic_load(&line->writes[i]))
			written |= 1u << i;
		if (atomic_load(&line->reads[i]) || atomic_load(&line->writes[i]))
			touched |= 1u << i;
	}
	return written && (touched & (touched - 1));
}

static void copy_line(const struct line *line, struct lines_shared *v)
{
	memset(v, 0, sizeof(*v));
	v->address = atomic_load(&line->number) * LINE;
	name_line(v->address, v->object, sizeof(v->object));
	v->transfers = atomic_load(&line->transfers);
	for (unsigned i = 0; i < LINES_PROCESSORS; i++) {
		v->reads[i] = atomic_load(&line->reads[i]);
		v->writes[i] = atomic_load(&line->writes[i]);
	}
	for (unsigned i = 0; i < LINES_SITES; i++) {
		v->site[i].at = atomic_load(&line->site[i].at);
		v->site[i].reads = atomic_load(&line->site[i].reads);
		v->site[i].writes = atomic_load(&line->site[i].writes);
		v->site[i].transfers = atomic_load(&line->site[i].transfers);
	}
}

static int compare_lines(const void *a, const void *b)
{
	const struct lines_shared *x = a, *y = b;

	if (x->transfers != y->transfers)
		return x->transfers < y->transfers ? 1 : -1;
	return x->address < y->address ? -1 : 1;
}

size_t lines_shared(struct lines_shared *v, size_t most)
{
	struct lines_shared *all = NULL;
	size_t count = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		count += is_shared(&table[i]);
	all = calloc(count + 1, sizeof(*all));
	if (!all)
		abort();
	count = 0;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (is_shared(&table[i]))
			copy_line(&table[i], &all[count++]);
	qsort(all, count, sizeof(*all), compare_lines);
	count = count < most ? count : most;
	memcpy(v, all, count * sizeof(*v));
	free(all);
	return count;
}

uint64_t lines_transfers(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		sum += atomic_load(&table[i].transfers);
	return sum;
}

static int note_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1; /* the first object is the program */
}

/* Innermost position and outermost function, as inlined functions are of less interest than their callers. */
void lines_describe(uintptr_t code, char *text, size_t size)
{
	char command[128], line[512], function[128] = "?", place[128] = "";
	uintptr_t base = 0;
	FILE *pipe;

	dl_iterate_phdr(note_base, &base);
	snprintf(command, sizeof(command), "addr2line -f -i -e /proc/%d/exe %#lx 2>&1",
		 (int)getpid(), (unsigned long)(code - base - 1));
	pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof(line), pipe)) {
		char *slash;

		snprintf(function, sizeof(function), "%.*s", (int)strcspn(line, "\n"), line);
		if (!fgets(line, sizeof(line), pipe))
			break;
		slash = strrchr(line, '/');
		if (!place[0])
			snprintf(place, sizeof(place), "%.*s",
				 (int)strcspn(slash ? slash + 1 : line, " \n"),
				 slash ? slash + 1 : line);
	}
	if (pipe)
		pclose(pipe);
	snprintf(text, size, "%s (%s)", function, place);
}

static unsigned busiest_site(const struct lines_shared *v)
{
	unsigned best = 0;

	for (unsigned i = 1; i < LINES_SITES; i++)
		if (v->site[i].transfers > v->site[best].transfers)
			best = i;
	return best;
}

/* Lines of no named object are told apart by the code that moves them most. */
static void describe_group(const struct lines_shared *v, char *text, size_t size)
{
	if (v->object[0])
		snprintf(text, size, "%s", v->object);
	else
		lines_describe(v->site[busiest_site(v)].at, text, size);
}

static bool in_group(const struct lines_shared *v, const struct lines_shared *first)
{
	if (v->object[0] || first->object[0])
		return !strcmp(v->object, first->object);
	return v->site[busiest_site(v)].at == first->site[busiest_site(first)].at;
}

static void print_sites(FILE *to, const struct lines_shared *v)
{
	for (unsigned i = 0; i < LINES_SITES && v->site[i].at; i++) {
		char text[300];

		lines_describe(v->site[i].at, text, sizeof(text));
		fprintf(to, "        %10llu %8llu r %8llu w  %s\n",
			(unsigned long long)v->site[i].transfers,
			(unsigned long long)v->site[i].reads, (unsigned long long)v->site[i].writes,
			text);
	}
}

/* Lines with the same name; `first` is the one with most transfers. */
struct group {
	const struct lines_shared *first;
	uint64_t transfers;
	size_t lines;
};

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->transfers == y->transfers ? 0 : x->transfers < y->transfers ? 1 : -1;
}

/* Returns how many there are; with the busiest lines first, new ones become rare. */
static size_t group_lines(const struct lines_shared *v, size_t count, struct group *group)
{
	size_t groups = 0;

	for (size_t i = 0; i < count; i++) {
		size_t at = 0;

		while (at < groups && !in_group(&v[i], group[at].first))
			at++;
		if (at == groups)
			group[groups++] = (struct group){.first = &v[i]};
		group[at].transfers += v[i].transfers;
		group[at].lines++;
	}
	qsort(group, groups, sizeof(*group), compare_groups);
	return groups;
}

void lines_print(FILE *to, double units, const char *unit, double packets)
{
	static struct lines_shared v[TABLE_SIZE];
	size_t count = lines_shared(v, TABLE_SIZE), groups;
	struct group *group = calloc(count + 1, sizeof(*group));
	double transfers = (double)lines_transfers();

	if (!group)
		abort();
	groups = group_lines(v, count, group);
	fprintf(to, "%zu shared lines; %.2f transfers per %s, %.4f per packet\n", count,
		transfers / units, unit, transfers / packets);
	fprintf(to, "per %s, lines, and where; below: transfers, reads, writes of one line\n",
		unit);
	for (size_t i = 0; i < groups; i++) {
		char text[300];

		describe_group(group[i].first, text, sizeof(text));
		fprintf(to, "%10.3f %6zu  %s\n", (double)group[i].transfers / units, group[i].lines,
			text);
		if ((double)group[i].transfers / units >= 0.05)
			print_sites(to, group[i].first);
	}
	free(group);
}
