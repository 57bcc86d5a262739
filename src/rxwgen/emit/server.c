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

/* ", &fid, name, &status": the arguments for the server's function. */
static const char *format_handler_arguments(struct emit *e, const struct xg_proc *proc)
{
	struct emit_list list = {.e = e};

	xg_for_params(param, proc, XG_INOUT) {
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

	xg_for_params(param, proc, XG_IN) {
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
	emit_stub(e, proc, "if (!$code) {\nrxw_rpc_writer(&$s, $call);");
	xg_for_params(param, proc, XG_OUT)
		emit_put_param(e, param, emit_stub_format(e, proc, "&$s.xdr"), format(e, param));
	emit_stub(e, proc, "if (!rxw_rpc_flush(&$s))\n\t$code = RXW_RPC_SS_MARSHAL;\n}");
}

static void emit_server_stub(struct emit *e, const struct xg_proc *proc)
{
	const char *x = emit_stub_format(e, proc, "&$s.xdr"), *handler = emit_handler(e, proc);
	bool in = xg_next_param(proc, NULL, XG_IN), out = xg_next_param(proc, NULL, XG_OUT);

	assert(!proc->own_stub);
	emit_stub(e, proc,
		  "\n"
		  "static int32_t %s(rxw_call *$call, const void *$service)\n{\n"
		  "const struct %sservice *$to = $service;%s",
		  format_stub_name(e, proc), emit_package_name(e, proc->package),
		  in || out ? emit_stub_format(e, proc, "\nstruct rxw_rpc_stream $s;") : "");
	xg_for_params(param, proc, XG_INOUT)
		emit_line(e, "%s = %s;", emit_variable(e, param, emit_param_name(e, param)),
			  emit_initial(param));
	if (in || out)
		emit_stub(e, proc, "int32_t $code%s;", in ? " = RXW_RPC_SS_UNMARSHAL" : "");
	emit_stub(e, proc, "\nif (!$to->handlers->%s)\n\treturn RXW_RPC_OPCODE;", handler);
	if (in) {
		emit_stub(e, proc, "rxw_rpc_reader(&$s, $call, RXW_RPC_%s, %u);",
			  proc->split ? "EXACT" : "WHOLE", (unsigned)e->options->request_max);
		emit_expected_size(e, proc, emit_local(e, proc, "s"));
		xg_for_params(param, proc, XG_IN)
			emit_get_param(e, param, x, emit_param_name(e, param));
		emit_line(e, "if (rxw_xdr_ok(%s))", x);
	}
	emit_stub(e, proc, "%s%s $to->handlers->%s($to->base.context, $call%s);", in ? "\t" : "",
		  in || out ? emit_stub_format(e, proc, "$code =") : "return", handler,
		  format_handler_arguments(e, proc));
	if (out)
		emit_results(e, proc, emit_param_name);
	xg_for_params(param, proc, XG_INOUT)
		emit_free_param(e, param, emit_param_name(e, param));
	emit_stub(e, proc, in || out ? "return $code;\n}" : "}");
}

static void emit_reply_function(struct emit *e, const struct xg_proc *proc)
{
	emit_line(e, "\n%s\n{", emit_answer_head(e, proc));
	if (xg_next_param(proc, NULL, XG_OUT)) {
		emit_stub(e, proc, "struct rxw_rpc_stream $s;\n\n");
		emit_results(e, proc, format_reply_value);
	}
	emit_stub(e, proc, "return rxw_rpc_answer($call, $code, &%sinterface, $FUNCTION);\n}",
		  emit_package_name(e, proc->package));
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
	emit_line(e, "\nstatic const struct rxw_rpc_entry %srpc_entries[] = {", name);
	for (size_t i = 0; i < package->proc_count; i++)
		emit_row(e,
			 emit_format(e, "{%s, %s, %s},", emit_opcode(e, sorted[i]),
				     emit_function(e, sorted[i]), format_stub_name(e, sorted[i])),
			 (int)sorted[i]->opcode);
	free(sorted);
	emit_line(e,
		  "};\n\n"
		  "static const struct rxw_rpc_table %srpc_table = {\n"
		  ".interface = &%sinterface,\n"
		  ".entries = %srpc_entries,\n"
		  ".count = %sNUMBER_OPCODES,\n"
		  "%s};\n\n"
		  "int32_t %s%sExecuteRequest(rxw_call *call, void *service)\n{\n"
		  "const struct %sservice *to = service;\n\n"
		  "return rxw_rpc_serve(call, &%srpc_table, &to->base, to);\n}",
		  name, name, name, package->name,
		  package->dense && !e->options->no_errno_swap ? ".swap_errno = true,\n" : "",
		  e->options->prefix, package->name, name, name);
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
		emit_server_stub(e, proc);
		emit_reply_function(e, proc);
		emit_forget(e);
	}
	for (size_t i = 0; emit_package(e, i); i++) {
		if (emit_package(e, i)->proc_count)
			emit_dispatcher(e, emit_package(e, i));
	}
}
