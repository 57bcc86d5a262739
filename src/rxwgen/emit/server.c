/* SPDX-License-Identifier: BSD-2-Clause */
/* Server stubs and dispatchers (rxgen.md 5.4). */
#include <assert.h>
#include <stdlib.h>

#include "rxwgen/emit/emit.h"

static const char *format_stub_name(struct emit *e, const struct xg_proc *proc)
{
	if (proc->own_stub)
		return proc->own_stub;
	return emit_format(e, "serve_%s", emit_proc_name(e, proc));
}

static bool has_direction(const struct xg_proc *proc, enum xg_direction direction)
{
	for (size_t i = 0; i < proc->param_count; i++) {
		if (proc->params[i].direction & direction)
			return true;
	}
	return false;
}

/* ", &fid, name, &status": the arguments for the server's function. */
static const char *format_handler_arguments(struct emit *e, const struct xg_proc *proc)
{
	struct emit_list list = {.e = e};

	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];
		struct emit_view view = emit_param_view(param);
		const char *mark = param->decl.shape == XG_FIXED ? "" : "&";

		if (param->direction == XG_IN)
			mark = emit_aggregate(&view) ? emit_const_address(e, param) : "";
		emit_list_add(&list, mark, emit_param_name(e, param));
	}
	return emit_list_end(&list);
}

/* Arguments of a split procedure: announce their minimum size, so that they are read at once. */
static void emit_expected_size(struct emit *e, const struct xg_proc *proc, const char *s)
{
	uint64_t least = 0;
	unsigned count = 0;
	bool fixed = true;

	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (!(param->direction & XG_IN))
			continue;
		least += param->decl.wire_min;
		fixed = fixed && param->decl.wire_size;
		count++;
	}
	/* A single argument of fixed size, or a single count, is read at once anyway. */
	if (proc->split && (count > 1 || (least > 4 && !fixed)))
		emit_line(e, "rxw_rpc_expect(&%s, %llu);", s, (unsigned long long)least);
}

/* An expression for a result, a parameter of NAME_reply. */
static const char *format_reply_value(struct emit *e, const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);
	const char *name = emit_param_name(e, param);

	if (param->decl.shape == XG_FIXED || !emit_aggregate(&view))
		return name;
	return emit_format(e, "*%s", name);
}

/* Encode the results if there is no `code`; `format` makes an expression for one. */
static void emit_results(struct emit *e, const struct xg_proc *proc,
			 const char *(*format)(struct emit *e, const struct xg_param *param))
{
	const char *s = emit_local(e, proc, "s"), *code = emit_local(e, proc, "code");

	emit_open(e, "if (!%s) {", code);
	emit_line(e, "rxw_rpc_writer(&%s, %s);", s, emit_local(e, proc, "call"));
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_OUT)
			emit_put_param(e, param, emit_format(e, "&%s.xdr", s), format(e, param));
	}
	emit_check(e, emit_format(e, "rxw_rpc_flush(&%s)", s),
		   emit_format(e, "%s = RXW_RPC_SS_MARSHAL;", code));
	emit_close(e, "}");
}

static void emit_server_stub(struct emit *e, const struct xg_proc *proc)
{
	const char *package = emit_package_name(e, proc->package);
	const char *s = emit_local(e, proc, "s"), *x = emit_format(e, "&%s.xdr", s);
	const char *to = emit_local(e, proc, "to"), *call = emit_local(e, proc, "call");
	const char *code = emit_local(e, proc, "code"), *service = emit_local(e, proc, "service");
	bool in = has_direction(proc, XG_IN), out = has_direction(proc, XG_OUT);

	assert(!proc->own_stub);
	emit_line(e, "static int32_t %s(rxw_call *%s, const void *%s)", format_stub_name(e, proc),
		  call, service);
	emit_open(e, "{");
	emit_line(e, "const struct %sservice *%s = %s;", package, to, service);
	if (in || out)
		emit_line(e, "struct rxw_rpc_stream %s;", s);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		emit_line(e, "%s = %s;", emit_variable(e, param, emit_param_name(e, param)),
			  emit_initial(param));
	}
	if (in)
		emit_line(e, "int32_t %s = RXW_RPC_SS_UNMARSHAL;", code);
	else if (out)
		emit_line(e, "int32_t %s;", code);
	emit_blank(e);
	emit_check(e, emit_format(e, "%s->handlers->%s", to, emit_handler(e, proc)),
		   "return RXW_RPC_OPCODE;");
	if (in) {
		emit_line(e, "rxw_rpc_reader(&%s, %s, RXW_RPC_%s, %u);", s, call,
			  proc->split ? "EXACT" : "WHOLE", (unsigned)e->options->request_max);
		emit_expected_size(e, proc, s);
		for (size_t i = 0; i < proc->param_count; i++) {
			const struct xg_param *param = &proc->params[i];

			if (param->direction & XG_IN)
				emit_get_param(e, param, x, emit_param_name(e, param));
		}
		emit_open(e, "if (rxw_xdr_ok(%s))", x);
	}
	emit_line(e, "%s %s->handlers->%s(%s->base.context, %s%s);",
		  in || out ? emit_format(e, "%s =", code) : "return", to, emit_handler(e, proc),
		  to, call, format_handler_arguments(e, proc));
	if (in)
		e->depth--;
	if (out)
		emit_results(e, proc, emit_param_name);
	for (size_t i = 0; i < proc->param_count; i++)
		emit_free_param(e, &proc->params[i], emit_param_name(e, &proc->params[i]));
	if (in || out)
		emit_line(e, "return %s;", code);
	emit_close(e, "}");
}

static void emit_reply_function(struct emit *e, const struct xg_proc *proc)
{
	const char *call = emit_local(e, proc, "call"), *code = emit_local(e, proc, "code");

	emit_line(e, "%s", emit_answer_head(e, proc));
	emit_open(e, "{");
	if (has_direction(proc, XG_OUT)) {
		emit_line(e, "struct rxw_rpc_stream %s;", emit_local(e, proc, "s"));
		emit_blank(e);
		emit_results(e, proc, format_reply_value);
	}
	emit_line(e, "return rxw_rpc_answer(%s, %s, &%sinterface, %s);", call, code,
		  emit_package_name(e, proc->package), emit_function(e, proc));
	emit_close(e, "}");
}

static int compare_opcodes(const void *a, const void *b)
{
	const struct xg_proc *const *left = a, *const *right = b;

	return ((*left)->opcode > (*right)->opcode) - ((*left)->opcode < (*right)->opcode);
}

static void emit_dispatcher(struct emit *e, const struct xg_package *package)
{
	const char *name = emit_package_name(e, package);
	const struct xg_proc **sorted = calloc(package->proc_count, sizeof(*sorted));

	assert(package->proc_count > 0);
	if (!sorted) {
		e->failed = true;
		return;
	}
	for (size_t i = 0; i < package->proc_count; i++)
		sorted[i] = package->procs[i];
	qsort(sorted, package->proc_count, sizeof(*sorted), compare_opcodes);
	emit_blank(e);
	emit_open(e, "static const struct rxw_rpc_entry %srpc_entries[] = {", name);
	for (size_t i = 0; i < package->proc_count; i++)
		emit_row(e,
			 emit_format(e, "{%s, %s, %s},", emit_opcode(e, sorted[i]),
				     emit_function(e, sorted[i]), format_stub_name(e, sorted[i])),
			 (int)sorted[i]->opcode);
	emit_close(e, "};");
	free(sorted);
	emit_blank(e);
	emit_open(e, "static const struct rxw_rpc_table %srpc_table = {", name);
	emit_line(e, ".interface = &%sinterface,", name);
	emit_line(e, ".entries = %srpc_entries,", name);
	emit_line(e, ".count = %sNUMBER_OPCODES,", package->name);
	if (package->dense && !e->options->no_errno_swap)
		emit_line(e, ".swap_errno = true,");
	emit_close(e, "};");
	emit_blank(e);
	emit_line(e, "int32_t %s%sExecuteRequest(rxw_call *call, void *service)",
		  e->options->prefix, package->name);
	emit_open(e, "{");
	emit_line(e, "const struct %sservice *to = service;", name);
	emit_blank(e);
	emit_line(e, "return rxw_rpc_serve(call, &%srpc_table, &to->base, to);", name);
	emit_close(e, "}");
}

void emit_server_output(struct emit *e)
{
	emit_title(e, "server stubs and dispatcher");
	emit_raw(e, emit_format(e, "#include \"%s.h\"", e->file->base));
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_proc *proc = e->file->items[i].proc;

		if (emit_verbatim(e, i) || e->file->items[i].kind != XG_ITEM_PROC || proc->own_stub)
			continue;
		e->index = emit_local(e, proc, "i");
		emit_blank(e);
		emit_server_stub(e, proc);
		emit_blank(e);
		emit_reply_function(e, proc);
		emit_forget(e);
	}
	for (size_t i = 0; emit_package(e, i); i++) {
		if (emit_package(e, i)->proc_count)
			emit_dispatcher(e, emit_package(e, i));
	}
}
