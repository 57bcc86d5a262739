/* SPDX-License-Identifier: BSD-2-Clause */
/* multi_X: one procedure on many connections (rxgen.md 5.3). */
#include "rxwgen/emit/emit.h"

#include <assert.h>

/* The variable for a result. */
static const char *name_result_variable(struct emit *e, const struct xg_proc *proc,
					const struct xg_param *param)
{
	assert(param->direction & XG_OUT);
	if (param->direction == XG_OUT)
		return emit_param_name(e, param);
	return emit_local(e, proc, emit_format(e, "%s_out", param->decl.name));
}

/* ", &entries" of all results. */
static const char *format_result_arguments(struct emit *e, const struct xg_proc *proc)
{
	struct emit_list list = {.e = e};

	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_OUT)
			emit_list_add(&list, param->decl.shape == XG_FIXED ? "" : "&",
				      name_result_variable(e, proc, param));
	}
	return emit_list_end(&list);
}

static void emit_multi_reply(struct emit *e, const struct xg_proc *proc)
{
	const char *code = emit_local(e, proc, "code");
	bool any = false;

	for (size_t i = 0; i < proc->param_count; i++)
		any = any || (proc->params[i].direction & XG_OUT);
	if (any) {
		emit_open(e, "if (%s) {", code);
		for (size_t i = 0; i < proc->param_count; i++) {
			if (proc->params[i].direction & XG_OUT)
				emit_clear_param(e, &proc->params[i],
						 name_result_variable(e, proc, &proc->params[i]));
		}
		emit_close(e, "}");
	}
	emit_line(e, "%s(%s, %s, %s%s);", emit_local(e, proc, "reply"), emit_local(e, proc, "arg"),
		  emit_local(e, proc, "index"), code, format_result_arguments(e, proc));
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];
		struct emit_view view = emit_param_view(param);

		if ((param->direction & XG_OUT) && emit_view_owns(&view))
			emit_free_param(e, param, name_result_variable(e, proc, param));
	}
}

static void emit_multi_loop(struct emit *e, const struct xg_proc *proc)
{
	const char *code = emit_local(e, proc, "code"), *call = emit_local(e, proc, "call");
	const char *index = emit_local(e, proc, "index"), *multi = emit_local(e, proc, "multi");
	const char *step = emit_local(e, proc, "step"), *name = emit_proc_name(e, proc);

	emit_open(e, "for (;;) {");
	emit_line(e, "enum rxw_rpc_step %s = rxw_rpc_multi_next(%s, &%s, &%s, &%s);", step, multi,
		  index, call, code);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_OUT)
			emit_line(e, "%s = %s;",
				  emit_variable(e, param, name_result_variable(e, proc, param)),
				  emit_initial(param));
	}
	emit_blank(e);
	emit_open(e, "if (%s == RXW_RPC_DONE)", step);
	emit_line(e, "break;");
	e->depth--;
	emit_open(e, "if (%s == RXW_RPC_START) {", step);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->start, name, call,
		  emit_arguments(e, proc, EMIT_START));
	emit_line(e, "rxw_rpc_multi_started(%s, %s, %s);", multi, index, code);
	emit_line(e, "continue;");
	emit_close(e, "}");
	emit_open(e, "if (%s == RXW_RPC_REPLY) {", step);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->end, name, call,
		  format_result_arguments(e, proc));
	emit_line(e, "%s = rxw_rpc_multi_ended(%s, %s, %s, &%sinterface, %s);", code, multi, index,
		  code, emit_package_name(e, proc->package), emit_function(e, proc));
	emit_close(e, "}");
	emit_multi_reply(e, proc);
	emit_close(e, "}");
}

void emit_multi(struct emit *e, const struct xg_proc *proc)
{
	const char *multi = emit_local(e, proc, "multi");
	const char *connections = emit_local(e, proc, "connections");
	const char *count = emit_local(e, proc, "count");

	emit_line(e, "%s", emit_multi_head(e, proc, true));
	emit_open(e, "{");
	emit_line(e, "struct rxw_rpc_multi *%s;", multi);
	emit_line(e, "rxw_call *%s;", emit_local(e, proc, "call"));
	emit_line(e, "unsigned %s;", emit_local(e, proc, "index"));
	emit_line(e, "int32_t %s;", emit_local(e, proc, "code"));
	emit_blank(e);
	emit_open(e, "if (!%s || (!%s && %s))", emit_local(e, proc, "reply"), connections, count);
	emit_line(e, "return -RXW_EINVAL;");
	e->depth--;
	emit_line(e, "%s = rxw_rpc_multi_create(%s, %s, %s);", multi, connections, count,
		  emit_local(e, proc, "options"));
	emit_check(e, multi, "return -RXW_ENOMEM;");
	emit_multi_loop(e, proc);
	emit_line(e, "rxw_rpc_multi_destroy(%s);", multi);
	emit_line(e, "return 0;");
	emit_close(e, "}");
	emit_blank(e);
	emit_line(e, "%s", emit_multi_head(e, proc, false));
	emit_open(e, "{");
	emit_line(e, "return multi_%s_opt(%s, %s, NULL%s, %s, %s);", emit_proc_name(e, proc),
		  connections, count, emit_arguments(e, proc, EMIT_MULTI),
		  emit_local(e, proc, "reply"), emit_local(e, proc, "arg"));
	emit_close(e, "}");
}
