/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an endpoint, as lines and as JSON. */
#include <stdio.h>
#include <string.h>

#include "rxwstat/stat.h"

const char *const stat_states[6] = {"none", "precall", "active", "dally", "hold", "reset"};
const char *const stat_modes[5] = {"-", "sending", "receiving", "error", "eof"};
static const char *const classes[5] = {"?", "null", "vab", "rxkad", "rxgk"};
/* The level that follows the class. The last text is for classes without levels. */
static const char *const levels[4] = {" clear", " auth", " crypt", ""};

/* rx-protocol 8.2. */
const char *const stat_words[STAT_WORDS] = {
	[0] = "packet_requests", [1] = "receive_alloc_failures", [2] = "send_alloc_failures",
	[3] = "special_alloc_failures", [4] = "socket_greedy", [5] = "bogus_packets",
	[6] = "bogus_hosts", [7] = "no_packet_on_read", [8] = "no_buffer_on_read", [9] = "selects",
	[10] = "send_selects",
	[24] = "data_received", [25] = "acks_received", [26] = "duplicates_received",
	[27] = "spurious_received", [41] = "acks_sent", [42] = "pings_sent", [43] = "aborts_sent",
	[44] = "busies_sent", [45] = "data_sent", [46] = "data_sent_again", [47] = "data_pushed",
	[48] = "ignored_acked", [55] = "rtt_samples", [56] = "connections_server",
	[57] = "connections_client", [58] = "peers", [59] = "calls", [60] = "calls_free",
	[61] = "send_failures", [62] = "fatal_errors", [63] = "ignored_dally",
	[64] = "receive_cbuf_alloc_failures", [65] = "send_cbuf_alloc_failures", [66] = "busies",
};

char *stat_host_text(const uint8_t host[4], uint16_t port, char *text, size_t size)
{
	static const uint8_t none[4];

	if (memcmp(host, none, 4))
		snprintf(text, size, "%u.%u.%u.%u:%u", host[0], host[1], host[2], host[3], port);
	else
		snprintf(text, size, "[IPv6]:%u", port); /* the layout has no room for it */
	return text;
}

/* Servers of OpenAFS name no class for connections of the null class. Their index shows it. */
static const char *class_name(const struct rxw_debug_conn *c)
{
	if (c->sec_type && c->sec_type < 5)
		return classes[c->sec_type];
	switch (c->security) {
	case 0:
		return classes[1];
	case 2:
		return classes[3];
	case 4:
		return classes[4];
	default:
		return classes[0];
	}
}

static double seconds_of_words(const uint32_t *word)
{
	return word[0] + word[1] / 1e6;
}

/* ---- JSON ---- */

static void put_count(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

#define N(value) (json_int_t)(value)

static json_t *call_json(const struct rxw_debug_conn *c, int i)
{
	return json_pack("{s:I, s:s, s:s, s:I, s:I}", "number", N(c->call[i]), "state",
			 stat_states[c->call_state[i] < 6 ? c->call_state[i] : 0], "mode",
			 stat_modes[c->call_mode[i] < 5 ? c->call_mode[i] : 0], "flags",
			 N(c->call_flags[i]), "queues", N(c->call_other[i]));
}

static json_t *conn_json(const struct rxw_debug_conn *c)
{
	char text[TOOLS_ADDRESS_TEXT];

	return json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:[o, o, o, o]}",
		"peer", stat_host_text(c->host, c->port, text, sizeof(text)), "role",
		c->type ? "server" : "client", "epoch", N(c->epoch), "cid", N(c->cid), "serial",
		N(c->serial), "error", N(c->error), "flags", N(c->flags), "security_index",
		N(c->security), "security", class_name(c), "security_level", N(c->sec_level),
		"security_flags", N(c->sec_flags), "security_expires", N(c->sec_expires), "mtu",
		N(c->nat_mtu), "packets_received", N(c->sec_packets_received), "packets_sent",
		N(c->sec_packets_sent), "bytes_received", N(c->sec_bytes_received), "bytes_sent",
		N(c->sec_bytes_sent), "calls", call_json(c, 0), call_json(c, 1), call_json(c, 2),
		call_json(c, 3));
}

static json_t *peer_json(const struct rxw_debug_peer *p)
{
	char text[TOOLS_ADDRESS_TEXT];

	return json_pack("{s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "peer",
			 stat_host_text(p->host, p->port, text, sizeof(text)), "rtt_ms",
			 p->rtt / 8.0, "rtt_dev_ms", p->rtt_dev / 4.0, "window", N(p->cwind), "mtu",
			 N(p->mtu), "mtu_max", N(p->max_mtu), "mtu_interface", N(p->if_mtu),
			 "packets_sent", N(p->sent), "packets_sent_again", N(p->resent),
			 "bytes_sent", N(p->bytes_sent), "bytes_received", N(p->bytes_received),
			 "references", N(p->refs));
}

static json_t *basic_json(const struct stat_view *v)
{
	char letter[2] = {v->letter, 0};

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "layout",
			 v->letter > ' ' && v->letter <= '~' ? letter : "?", "calls_executed",
			 N(v->basic.calls_executed), "calls_waiting", N(v->basic.waiting),
			 "calls_waited", N(v->basic.waited), "threads_idle",
			 N(v->basic.idle_threads), "packets", N(v->basic.packets), "packets_free",
			 N(v->basic.free_packets), "packet_reclaims", N(v->basic.reclaims));
}

static json_t *rx_json(const struct rxw_debug_rxstats *rx)
{
	json_t *object = json_object(), *received = json_array(), *sent = json_array();

	for (int i = 0; i < STAT_WORDS; i++)
		if (stat_words[i])
			put_count(object, stat_words[i], rx->word[i]);
	for (int type = 1; type <= 13; type++) {
		json_array_append_new(received, json_integer(rx->word[10 + type]));
		json_array_append_new(sent, json_integer(rx->word[27 + type]));
	}
	json_object_set_new(object, "received_by_type", received);
	json_object_set_new(object, "sent_by_type", sent);
	json_object_set_new(object, "rtt_total_s", json_real(seconds_of_words(&rx->word[49])));
	json_object_set_new(object, "rtt_min_s", json_real(seconds_of_words(&rx->word[51])));
	json_object_set_new(object, "rtt_max_s", json_real(seconds_of_words(&rx->word[53])));
	return object;
}

/* The samples as NAME or NAME{LABELS}, without the endpoint's label. */
static json_t *samples_json(const struct stat_samples *samples)
{
	json_t *object = json_object();

	for (size_t i = 0; i < samples->count; i++) {
		const struct stat_sample *s = &samples->at[i];
		const char *rest = strchr(s->labels, ',');
		char key[512];

		snprintf(key, sizeof(key), rest ? "%s{%s}" : "%s", s->name, rest ? rest + 1 : "");
		json_object_set_new(object, key, json_real(s->value));
	}
	return object;
}

json_t *stat_json(const struct stat_view *v)
{
	json_t *object = json_object(), *list;

	json_object_set_new(object, "endpoint", json_string(v->name));
	json_object_set_new(object, "version", json_string(v->version));
	json_object_set_new(object, "answered", json_boolean(v->answered));
	if (v->answered) {
		json_object_set_new(object, "basic", basic_json(v));
		list = json_array();
		for (size_t i = 0; i < v->conn_count; i++)
			json_array_append_new(list, conn_json(&v->conns[i]));
		json_object_set_new(object, "connections", list);
		list = json_array();
		for (size_t i = 0; i < v->peer_count; i++)
			json_array_append_new(list, peer_json(&v->peers[i]));
		json_object_set_new(object, "peers", list);
		json_object_set_new(object, "more", json_boolean(v->more));
	}
	if (v->have_rx)
		json_object_set_new(object, "rx", rx_json(&v->rx));
	if (v->samples.count)
		json_object_set_new(object, "metrics", samples_json(&v->samples));
	if (v->calls) {
		json_object_set(object, "calls", v->calls);
		put_count(object, "calls_left_out", v->calls_left_out);
	}
	return object;
}

/* ---- lines ---- */

static void print_samples(const struct stat_samples *s)
{
	printf("  calls     %.0f begun, %.0f ended, %.0f failed, %.0f timed out, %.0f refused; "
	       "%.0f active, %.0f waiting\n",
	       stat_sum(s, "rxwire_calls_started_total", ""),
	       stat_sum(s, "rxwire_calls_ended_total", ""),
	       stat_sum(s, "rxwire_calls_aborted_total", ""),
	       stat_sum(s, "rxwire_calls_timed_out_total", ""),
	       stat_sum(s, "rxwire_calls_refused_total", ""),
	       stat_sum(s, "rxwire_calls_active", ""), stat_sum(s, "rxwire_calls_waiting", ""));
	printf("  data      %.0f bytes sent, %.0f received; %.0f packets retransmitted, %.0f "
	       "duplicates\n",
	       stat_sum(s, "rxwire_bytes_total", "direction=\"sent\""),
	       stat_sum(s, "rxwire_bytes_total", "direction=\"received\""),
	       stat_sum(s, "rxwire_retransmitted_total", ""),
	       stat_sum(s, "rxwire_duplicates_total", ""));
	printf("  windows   sent by writers %.0f, by receivers %.0f; losses %.0f, false %.0f, "
	       "timeouts %.0f\n",
	       stat_sum(s, "rxwire_windows_total", "sent_by=\"writer\""),
	       stat_sum(s, "rxwire_windows_total", "sent_by=\"receiver\""),
	       stat_sum(s, "rxwire_loss_events_total", ""),
	       stat_sum(s, "rxwire_spurious_losses_total", ""),
	       stat_sum(s, "rxwire_rto_events_total", ""));
	if (stat_sum(s, "rxwire_move_pings_total", "") > 0)
		printf("  moves     %.0f clients followed to another address, %.0f not; %.0f did not "
		       "prove it; %.0f PINGs\n",
		       stat_sum(s, "rxwire_moves_total", "outcome=\"done\""),
		       stat_sum(s, "rxwire_moves_total", "outcome=\"refused\""),
		       stat_sum(s, "rxwire_moves_total", "outcome=\"expired\""),
		       stat_sum(s, "rxwire_move_pings_total", ""));
	printf("  drops    ");
	for (size_t i = 0; i < s->count; i++) {
		char cause[64];

		if (!strcmp(s->at[i].name, "rxwire_drops_total") && s->at[i].value > 0 &&
		    stat_label(s->at[i].labels, "cause", cause, sizeof(cause)))
			printf(" %s %.0f,", cause, s->at[i].value);
	}
	printf(" socket full %.0f\n", stat_sum(s, "rxwire_kernel_drops_total", ""));
}

static const char *level_text(const struct rxw_debug_conn *c)
{
	if (c->sec_flags & 1)
		return ", client unknown";
	if (c->sec_flags & 4)
		return ", ticket expired";
	return levels[(c->sec_flags & 2) && c->sec_level < 3 ? c->sec_level : 3];
}

static void print_conn(const struct rxw_debug_conn *c)
{
	char text[TOOLS_ADDRESS_TEXT];

	printf("  %s %s, id %08x/%08x, class %u (%s%s), serial %u, mtu %u", c->type ? "from" : "to",
	       stat_host_text(c->host, c->port, text, sizeof(text)), c->epoch, c->cid, c->security,
	       class_name(c), level_text(c), c->serial, c->nat_mtu);
	if (c->error)
		printf(", error %d", (int)c->error);
	printf("\n");
	for (int i = 0; i < 4; i++)
		if (c->call_state[i])
			printf("    call %d: number %u, %s, %s%s%s%s%s\n", i, c->call[i],
			       stat_states[c->call_state[i] < 6 ? c->call_state[i] : 0],
			       stat_modes[c->call_mode[i] < 5 ? c->call_mode[i] : 0],
			       c->call_flags[i] & 1 ? ", reader waits" : "",
			       c->call_flags[i] & 6 ? ", writer waits for the window" : "",
			       c->call_flags[i] & 16 ? ", waits for a worker" : "",
			       c->call_other[i] & 2 ? ", something to send" : "");
}

static void print_calls(const struct stat_view *v)
{
	char line[256];
	json_t *call;
	size_t i;

	if (json_array_size(v->calls) > 0) {
		stat_call_line(NULL, 0, line, sizeof(line));
		printf("  %s\n", line);
	}
	json_array_foreach(v->calls, i, call)
	{
		stat_call_line(call, stat_call_rate(call, NULL), line, sizeof(line));
		printf("  %s\n", line);
	}
	if (v->calls_left_out)
		printf("  %llu slower calls of the program are not shown\n",
		       (unsigned long long)v->calls_left_out);
}

void stat_print(const struct stat_view *v)
{
	char text[TOOLS_ADDRESS_TEXT];

	printf("%s: %s\n", v->name, *v->version ? v->version : "no answer");
	if (v->samples.count)
		print_samples(&v->samples);
	print_calls(v);
	if (!v->answered) {
		if (*v->version)
			printf("  does not answer DEBUG packets from this host\n");
		return;
	}
	printf("  threads   %u idle; calls executed %u, waiting %u, ever waited %u; "
	       "packets free %u of %u\n",
	       v->basic.idle_threads, v->basic.calls_executed, v->basic.waiting, v->basic.waited,
	       v->basic.free_packets, v->basic.packets);
	if (v->have_rx)
		printf("  packets   data %u received, %u sent, %u again; "
		       "ACKs %u received, %u sent; BUSY %u, ABORT %u sent\n"
		       "  known     connections from clients %u, to servers %u; peers %u\n",
		       v->rx.word[24], v->rx.word[45], v->rx.word[46], v->rx.word[25],
		       v->rx.word[41], v->rx.word[44], v->rx.word[43], v->rx.word[56],
		       v->rx.word[57], v->rx.word[58]);
	for (size_t i = 0; i < v->conn_count; i++)
		print_conn(&v->conns[i]);
	for (size_t i = 0; i < v->peer_count; i++) {
		const struct rxw_debug_peer *p = &v->peers[i];

		printf("  peer %s: rtt %.2f ms (+- %.2f), window %u, mtu %u, "
		       "sent %u packets (%u again), %llu bytes, received %llu bytes\n",
		       stat_host_text(p->host, p->port, text, sizeof(text)), p->rtt / 8.0,
		       p->rtt_dev / 4.0, p->cwind, p->mtu, p->sent, p->resent,
		       (unsigned long long)p->bytes_sent, (unsigned long long)p->bytes_received);
	}
	if (v->more)
		printf("  not all are shown; see --most\n");
}
