/* SPDX-License-Identifier: BSD-2-Clause */
/* The live view on a terminal: rates between two queries, connections and peers. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "rxwstat/stat.h"

#if RXW_HAVE_NCURSES
#	include <ncurses.h>

/* The latest query, and the one before it for rates. */
struct snapshots {
	struct stat_view *now, *before;
	size_t now_count, before_count;
};

static const struct stat_view *view_before(const struct snapshots *l, const struct stat_view *v)
{
	for (size_t i = 0; i < l->before_count; i++)
		if (!strcmp(l->before[i].name, v->name))
			return &l->before[i];
	return NULL;
}

static double difference_per_second(double now, double before, const struct stat_view *v,
				    const struct stat_view *b)
{
	double seconds = b && v->at > b->at ? (double)(v->at - b->at) / 1e9 : 0;

	return seconds > 0 && now >= before ? (now - before) / seconds : 0;
}

static double rate_of_metric(const struct snapshots *l, const struct stat_view *v, const char *name,
			     const char *labels)
{
	const struct stat_view *b = view_before(l, v);

	return b ? difference_per_second(stat_sum(&v->samples, name, labels),
					 stat_sum(&b->samples, name, labels), v, b)
		 : 0;
}

static double rate_of_word(const struct snapshots *l, const struct stat_view *v, unsigned word)
{
	const struct stat_view *b = view_before(l, v);

	return b && b->have_rx ? difference_per_second(
					 (uint32_t)(v->rx.word[word] - b->rx.word[word]), 0, v, b)
			       : 0;
}

/* Lines beyond the screen are dropped. */
static void print_screen_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print_screen_line(const char *format, ...)
{
	int y, x;
	va_list args;

	getyx(stdscr, y, x);
	(void)x;
	if (y >= LINES - 1)
		return;
	va_start(args, format);
	vw_printw(stdscr, format, args);
	va_end(args);
	clrtoeol();
	move(y + 1, 0);
}

static void show_metrics(const struct snapshots *l, const struct stat_view *v)
{
	double full = stat_sum(&v->samples, "rxwire_kernel_drops_total", "");

	print_screen_line("  MB/s in %.1f out %.1f | calls/s %.1f, active %.0f, waiting %.0f, "
			  "workers %.0f (%.0f idle)",
			  rate_of_metric(l, v, "rxwire_bytes_total", "direction=\"received\"") /
				  1e6,
			  rate_of_metric(l, v, "rxwire_bytes_total", "direction=\"sent\"") / 1e6,
			  rate_of_metric(l, v, "rxwire_calls_started_total", ""),
			  stat_sum(&v->samples, "rxwire_calls_active", ""),
			  stat_sum(&v->samples, "rxwire_calls_waiting", ""),
			  stat_sum(&v->samples, "rxwire_workers", ""),
			  stat_sum(&v->samples, "rxwire_workers_idle", ""));
	print_screen_line("  retransmits/s %.1f | windows/s by writer %.1f, by receiver %.1f | "
			  "losses/s %.1f, timeouts/s %.1f",
			  rate_of_metric(l, v, "rxwire_retransmitted_total", ""),
			  rate_of_metric(l, v, "rxwire_windows_total", "sent_by=\"writer\""),
			  rate_of_metric(l, v, "rxwire_windows_total", "sent_by=\"receiver\""),
			  rate_of_metric(l, v, "rxwire_loss_events_total", ""),
			  rate_of_metric(l, v, "rxwire_rto_events_total", ""));
	for (size_t i = 0; i < v->samples.count; i++) {
		const struct stat_sample *s = &v->samples.at[i];
		char cause[64];

		if (!strcmp(s->name, "rxwire_drops_total") && s->value > 0 &&
		    stat_label(s->labels, "cause", cause, sizeof(cause)))
			print_screen_line("  dropped: %-16s %.0f (%.1f/s)", cause, s->value,
					  rate_of_metric(l, v, s->name, s->labels));
	}
	if (full > 0)
		print_screen_line("  dropped: %-16s %.0f (%.1f/s)", "socket full", full,
				  rate_of_metric(l, v, "rxwire_kernel_drops_total", ""));
}

/* A call of the table, with its rate since the previous view. */
struct row {
	const json_t *call;
	double rate;
};

static int compare_call_rates(const void *a, const void *b)
{
	double first = ((const struct row *)a)->rate, second = ((const struct row *)b)->rate;

	return (first < second) - (first > second);
}

static void show_calls(const struct snapshots *l, const struct stat_view *v)
{
	size_t count = json_array_size(v->calls);
	struct row *rows = count ? calloc(count, sizeof(*rows)) : NULL;
	char text[256];

	if (!rows)
		return;
	for (size_t i = 0; i < count; i++) {
		rows[i].call = json_array_get(v->calls, i);
		rows[i].rate = stat_call_rate(rows[i].call, view_before(l, v));
	}
	qsort(rows, count, sizeof(*rows), compare_call_rates);
	stat_call_line(NULL, 0, text, sizeof(text));
	print_screen_line("  %s", text);
	for (size_t i = 0; i < count; i++) {
		stat_call_line(rows[i].call, rows[i].rate, text, sizeof(text));
		print_screen_line("  %s", text);
	}
	free(rows);
}

static void show_endpoint(const struct snapshots *l, const struct stat_view *v)
{
	char text[TOOLS_ADDRESS_TEXT];

	attron(A_BOLD);
	print_screen_line("%s  %s", v->name, *v->version ? v->version : "no answer");
	attroff(A_BOLD);
	if (v->samples.count)
		show_metrics(l, v);
	else if (v->have_rx)
		print_screen_line(
			"  packets/s in %.1f out %.1f, again %.1f | ACKs/s in %.1f out %.1f | "
			"calls waiting %u",
			rate_of_word(l, v, 24), rate_of_word(l, v, 45), rate_of_word(l, v, 46),
			rate_of_word(l, v, 25), rate_of_word(l, v, 41), v->basic.waiting);
	show_calls(l, v);
	if (v->peer_count)
		print_screen_line("  %-24s %9s %7s %6s %12s %9s %14s %14s", "PEER", "RTT ms",
				  "WINDOW", "MTU", "SENT", "AGAIN", "BYTES OUT", "BYTES IN");
	for (size_t i = 0; i < v->peer_count; i++) {
		const struct rxw_debug_peer *p = &v->peers[i];

		print_screen_line("  %-24s %9.2f %7u %6u %12u %9u %14llu %14llu",
				  stat_host_text(p->host, p->port, text, sizeof(text)),
				  p->rtt / 8.0, p->cwind, p->mtu, p->sent, p->resent,
				  (unsigned long long)p->bytes_sent,
				  (unsigned long long)p->bytes_received);
	}
	for (size_t i = 0; i < v->conn_count; i++)
		for (int k = 0; k < 4; k++) {
			const struct rxw_debug_conn *c = &v->conns[i];

			if (c->call_state[k] != 1 && c->call_state[k] != 2 && c->call_state[k] != 4)
				continue;
			print_screen_line("  call %08x.%d #%u %s %s: %s, %s%s", c->cid, k,
					  c->call[k], c->type ? "from" : "to",
					  stat_host_text(c->host, c->port, text, sizeof(text)),
					  stat_states[c->call_state[k]],
					  stat_modes[c->call_mode[k] < 5 ? c->call_mode[k] : 0],
					  c->call_flags[k] & 1	  ? ", reader waits"
					  : c->call_flags[k] & 6  ? ", writer waits"
					  : c->call_flags[k] & 16 ? ", no worker"
								  : "");
		}
}

static void show_all(const struct snapshots *l, const char *trouble)
{
	move(0, 0);
	for (size_t i = 0; i < l->now_count; i++)
		show_endpoint(l, &l->now[i]);
	if (*trouble)
		print_screen_line("%s", trouble);
	clrtobot();
	mvprintw(LINES - 1, 0, "q: quit");
	refresh();
}

int stat_live(const struct stat_source *source, uint64_t interval_ms, uint64_t rounds)
{
	struct snapshots l = {0};
	uint64_t done = 0;
	int key = 0;

	if (!isatty(STDOUT_FILENO))
		return tools_fail(TOOLS_EXIT_USAGE,
				  "--live needs a terminal; omit it, or use --json, to print the "
				  "state once");
	initscr();
	cbreak();
	noecho();
	curs_set(0);
	while (key != 'q' && key != 'Q' && (!rounds || done < rounds)) {
		char trouble[512];
		struct stat_view *views;
		size_t count;

		views = stat_collect(source, &count, trouble, sizeof(trouble));
		if (views) {
			stat_forget(l.before, l.before_count);
			l.before = l.now;
			l.before_count = l.now_count;
			l.now = views;
			l.now_count = count;
			for (size_t i = 0; i < count; i++)
				stat_order_peers(&views[i], view_before(&l, &views[i]));
			*trouble = 0;
		}
		show_all(&l, trouble);
		if (++done != rounds) {
			timeout((int)interval_ms);
			key = getch();
		}
	}
	endwin();
	stat_forget(l.before, l.before_count);
	stat_forget(l.now, l.now_count);
	return 0;
}

#else

int stat_live(const struct stat_source *source, uint64_t interval_ms, uint64_t rounds)
{
	(void)source;
	(void)interval_ms;
	(void)rounds;
	return tools_fail(
		TOOLS_EXIT_FAILURE,
		"--live: this rxwstat was built without curses (Debian package: libncurses-dev)");
}

#endif
