"""Small scheduled texts, written by hand in the form that the compiler for TPUs prints."""

from __future__ import annotations

SUM = """%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}
"""
DOUBLE = """%double (q: f32[64]) -> f32[64] {
  %q = f32[64]{0} parameter(0)
  ROOT %twice = f32[64]{0} add(%q, %q)
}
"""
HEADER = "HloModule made, is_scheduled=true, num_partitions=4\n\n"


def scope(*steps: int) -> str:
    return 'metadata={op_name="jit(local)/shard_map/' + "/while/body/".join(f"step{n}" for n in steps) + '/psum"}'


def cycles(number: int) -> str:
    return f'backend_config={{"window_config":{{"estimated_cycles":"{number}"}}}}'


LOOP = f"""{HEADER}{SUM}
{DOUBLE}
%test (state: (s32[], f32[64])) -> pred[] {{
  %state = (s32[], f32[64]{{0}}) parameter(0)
  %turn = s32[] get-tuple-element(%state), index=0
  %most = s32[] constant(5)
  ROOT %less = pred[] compare(%turn, %most), direction=LT
}}
%body (carried: (s32[], f32[64])) -> (s32[], f32[64]) {{
  %carried = (s32[], f32[64]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%carried), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[64]{{0}} get-tuple-element(%carried), index=1
  %body_sum = f32[64]{{0}} all-reduce(%x), channel_id=1, replica_groups=[2,2]<=[4], to_apply=%sum, {scope(2, 7)}
  %after = f32[64]{{0}} fusion(%body_sum), kind=kLoop, calls=%double, {cycles(1000)}
  ROOT %out = (s32[], f32[64]{{0}}) tuple(%next, %after)
}}
ENTRY %main (p: f32[64]) -> f32[64] {{
  %p = f32[64]{{0}} parameter(0)
  %before = f32[64]{{0}} fusion(%p), kind=kLoop, calls=%double, {scope(1)}, {cycles(100)}
  %zero = s32[] constant(0)
  %start_state = (s32[], f32[64]{{0}}) tuple(%zero, %before)
  %loop = (s32[], f32[64]{{0}}) while(%start_state), condition=%test, body=%body
  ROOT %result = f32[64]{{0}} get-tuple-element(%loop), index=1
}}
"""

TURNS = "source_target_pairs={{0,1},{1,0},{2,3},{3,2}}"
PAIR = f"""{HEADER}{DOUBLE}
ENTRY %main (p: f32[64]) -> (f32[64], f32[64]) {{
  %p = f32[64]{{0}} parameter(0)
  %start = (f32[64]{{0}}, f32[64]{{0}}, u32[], u32[]) collective-permute-start(%p), {TURNS}
  %work = f32[64]{{0}} fusion(%p), kind=kLoop, calls=%double, {cycles(900)}
  %done = f32[64]{{0}} collective-permute-done(%start)
  ROOT %both = (f32[64]{{0}}, f32[64]{{0}}) tuple(%work, %done)
}}
"""

WRAPPED = f"""{HEADER}{SUM}
%all-reduce-scatter (input: f32[60]) -> f32[32] {{
  %input = f32[60]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %padded = f32[64]{{0}} pad(%input, %zero), padding=0_4
  %all = f32[64]{{0}} all-reduce(%padded), channel_id=1, replica_groups={{{{0,2}},{{1,3}}}}, to_apply=%sum
  %at = s32[] constant(0)
  ROOT %own = f32[32]{{0}} dynamic-slice(%all, %at), dynamic_slice_sizes={{32}}
}}
ENTRY %main (p: f32[60]) -> f32[32] {{
  %p = f32[60]{{0}} parameter(0)
  ROOT %scattered = f32[32]{{0}} fusion(%p), kind=kCustom, calls=%all-reduce-scatter
}}
"""

_STATE = "(f32[16], f32[64], s32[2])"
_PAIR = "f32[64]{0}, f32[32]{0}"
_GATHER = (
    "replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true, "
    'frontend_attributes={chain_id="3"}, ' + scope(4)
)
# A collective beside the products of several fusions: a TPU writes it in each of them.
CHAIN = f"""{HEADER}{DOUBLE}
%starts (i: f32[32]) -> {_STATE} {{
  %i = f32[32]{{0}} parameter(0)
  %gather_1 = f32[64]{{0}} all-gather(%i), channel_id=8, {_GATHER}
  ROOT %call = {_STATE} custom-call(%i, %gather_1), custom_call_target="AsyncCollectiveStart"
}}
%async_collective_fusion.1 (j: f32[32], v: f32[64]) -> (f32[64], f32[32]) {{
  %j = f32[32]{{0}} parameter(0)
  %v = f32[64]{{0}} parameter(1)
  %gather_2 = f32[64]{{0}} all-gather(%j), channel_id=8, {_GATHER}
  %w = f32[64]{{0}} add(%v, %v)
  ROOT %on = (f32[64]{{0}}, f32[32]{{0}}) tuple(%w, %j)
}}
%ends (k: f32[32]) -> f32[64] {{
  %k = f32[32]{{0}} parameter(0)
  %gather_3 = f32[64]{{0}} all-gather(%k), channel_id=8, {_GATHER}
  ROOT %called = f32[64]{{0}} custom-call(%k, %gather_3), custom_call_target="AsyncCollectiveDone"
}}
ENTRY %main (p: f32[32], r: f32[64]) -> (f32[64], f32[64]) {{
  %p = f32[32]{{0}} parameter(0)
  %r = f32[64]{{0}} parameter(1)
  %async-collective-start = {_STATE} fusion(%p), kind=kCustom, calls=%starts
  %first = f32[32]{{0}} get-tuple-element(%async-collective-start), index=0
  %beside = ({_PAIR}) fusion(%first, %r), kind=kOutput, calls=%async_collective_fusion.1, {cycles(900)}
  %made = f32[64]{{0}} get-tuple-element(%beside), index=0
  %second = f32[32]{{0}} get-tuple-element(%beside), index=1
  %async-collective-done = f32[64]{{0}} fusion(%second), kind=kCustom, calls=%ends
  ROOT %both = (f32[64]{{0}}, f32[64]{{0}}) tuple(%made, %async-collective-done)
}}
"""

_SENT = "(f32[64])"
# A TPU with cores for collectives: the wrapper begins without its array, which a later update hands over. Equal ones
# share what runs there, so the step that this names is another's.
OFFLOADED = f"""{HEADER}{SUM}
{DOUBLE}
%on_its_core (array: f32[64]) -> f32[64] {{
  %array = f32[64]{{0}} parameter(0)
  %held = {_SENT} tuple(%array)
  %taken = f32[64]{{0}} get-tuple-element(%held), index=0
  ROOT %core_sum = f32[64]{{0}} all-reduce(%taken), channel_id=1, replica_groups=[2,2]<=[4], to_apply=%sum, {scope(2)}
}}, execution_thread="sparsecore"
%handed_over (given: f32[64]) -> f32[64] {{
  %given = f32[64]{{0}} parameter(0)
  ROOT %custom = f32[64]{{0}} custom-call(%given), custom_call_target="made", called_computations={{%on_its_core}}
}}, execution_thread="sparsecore"
ENTRY %main (p: f32[64]) -> (f32[64], f32[64]) {{
  %p = f32[64]{{0}} parameter(0)
  %begun = ((), (), (s32[8])) async-start(), async_execution_thread="sparsecore", calls=%handed_over, {scope(6)}
  %first = f32[64]{{0}} fusion(%p), kind=kLoop, calls=%double, {cycles(500)}
  %update = ({_SENT}, f32[64], (s32[8])) async-update(%begun, %first), output_to_operand_aliasing={{}}
  %second = f32[64]{{0}} fusion(%p), kind=kLoop, calls=%double, {cycles(900)}
  %ended = f32[64]{{0}} async-done(%update), {scope(6)}
  ROOT %both = (f32[64]{{0}}, f32[64]{{0}}) tuple(%second, %ended)
}}
"""
