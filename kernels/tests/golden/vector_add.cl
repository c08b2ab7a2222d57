#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void tw_vector_add_block(
    __global uchar *arg0, ulong arg0_offset, // arg_x
    int arg1, // arg_x_dim0
    int arg2, // arg_x_stride0
    __global uchar *arg3, ulong arg3_offset, // arg_y
    int arg4, // arg_y_dim0
    int arg5, // arg_y_stride0
    __global uchar *arg6, ulong arg6_offset, // arg_out
    int arg7, // arg_out_dim0
    int arg8 // arg_out_stride0
)
{
    ulong r0 = (ulong)arg0 + arg0_offset;
    uint r1 = (uint)arg1;
    ulong r3 = (ulong)arg3 + arg3_offset;
    uint r4 = (uint)arg4;
    ulong r5 = (ulong)arg6 + arg6_offset;
    uint r6 = (uint)arg7;
    uint r8 = (uint)get_group_id(0);
    uint r11 = r8 << 10u;
    uint r12 = (uint)get_local_id(0);
    uint r15 = r12 << 2u;
    uint r16 = r11 + r15;
    ulong r17 = (ulong)(long)(int)r16;
    ulong r20 = r17 << 2ul;
    ulong r22 = r0 + r20;
    bool r23 = r16 < r1;
    float r24 = as_float(0x00000000u);
    float r25 = as_float(0x00000000u);
    float r26 = as_float(0x00000000u);
    float r27 = as_float(0x00000000u);
    if (r23) {
        float4 t1 = *(__global const float4 *)(r22);
        r24 = t1.s0;
        r25 = t1.s1;
        r26 = t1.s2;
        r27 = t1.s3;
    }
    ulong r28 = r3 + r20;
    bool r29 = r16 < r4;
    float r30 = as_float(0x00000000u);
    float r31 = as_float(0x00000000u);
    float r32 = as_float(0x00000000u);
    float r33 = as_float(0x00000000u);
    if (r29) {
        float4 t2 = *(__global const float4 *)(r28);
        r30 = t2.s0;
        r31 = t2.s1;
        r32 = t2.s2;
        r33 = t2.s3;
    }
    float r34 = r24 + r30;
    float r35 = r25 + r31;
    float r36 = r26 + r32;
    float r37 = r27 + r33;
    ulong r38 = r5 + r20;
    bool r41 = r16 < r6;
    if (r41) *(__global float4 *)(r38) = (float4)(r34, r35, r36, r37);
}
